package story

import (
	"fmt"
	"slices"
	"time"
)

// State is where a volume is in its life.
type State int

// The states.
const (
	Absent State = iota // the daemon does not know it, and there is no data
	Live                // published, or about to be: its data may not go
	Kept                // retained
)

// world is a state that a volume may be in.
type world struct {
	state State
	// earliest and latest bound the deadline of one that is kept. While the
	// unpublish is without an answer latest is zero, and the lifespan counts from
	// whenever it is carried out.
	earliest, latest time.Time
	lifespan         time.Duration
	// gone says that its data was seen to be gone.
	gone bool
}

// Story is what is known of a volume: the states that it may be in, of which
// there are several while a call is without an answer. What is seen has to fit one
// of them, and those that it does not fit are out.
type Story struct {
	// tolerance is how long after its deadline data may still be there.
	tolerance time.Duration

	events  []Event
	worlds  []world
	markers int
	// down says that there is no daemon, ready when there was one again.
	down  bool
	ready time.Time
	last  Verb
	// broken is the first thing that does not fit; nothing is judged after it.
	broken string
}

// New begins the story of a volume that nobody has asked for yet.
func New(tolerance time.Duration) *Story {
	return &Story{tolerance: tolerance, worlds: []world{{state: Absent}}}
}

// Add goes on with the story.
func (s *Story) Add(e Event) {
	s.events = append(s.events, e)
	if s.broken != "" {
		return
	}
	switch e.What {
	case Publish:
		s.become(world{state: Live})
	case Published:
		s.published(e)
	case Wrote:
		s.markers = e.N
	case Unpublish:
		s.mayBeKept(e)
	case Retained:
		s.answered(e.At)
	case Forget:
		s.mayBeKept(e)
		s.answered(e.Until)
	case Cut:
		s.cut(e.At)
	case Ready:
		s.down, s.ready = false, e.At
	case Whole:
		s.last = Whole
		s.whole(e.At)
	case Gone:
		s.last = Gone
		s.gone(e)
	case Partial:
		s.breaks("its data is not whole: %s", e.Text)
	case Failed:
		s.breaks("%s", e.Text)
	case Ended:
		if s.last != Gone {
			s.breaks("it is kept for ever: it was still there at the end")
		}
	}
}

// Broken is the first thing that was seen and fits no state; empty for none.
func (s *Story) Broken() string { return s.broken }

// Markers is how many markers the data has to have.
func (s *Story) Markers() int { return s.markers }

// IsGone tells whether the last look found no data.
func (s *Story) IsGone() bool { return s.last == Gone }

// SeenGone tells whether the data was seen to be gone, and nothing promises it since.
func (s *Story) SeenGone() bool {
	return slices.ContainsFunc(s.worlds, func(w world) bool { return w.gone })
}

func (s *Story) breaks(format string, args ...any) { s.broken = fmt.Sprintf(format, args...) }

// become adds a state.
func (s *Story) become(w world) {
	if !slices.Contains(s.worlds, w) {
		s.worlds = append(s.worlds, w)
	}
}

// Is tells whether the volume can only be in a state.
func (s *Story) Is(want State) bool {
	return !slices.ContainsFunc(s.worlds, func(w world) bool { return w.state != want })
}

// May tells whether the volume may be in a state.
func (s *Story) May(want State) bool {
	return slices.ContainsFunc(s.worlds, func(w world) bool { return w.state == want })
}

// published: with fewer markers than were synced it is a new volume, so the old
// one has to have been over by then.
func (s *Story) published(e Event) {
	if e.N != s.markers {
		if e.N != 0 {
			s.breaks("published with %d of %d markers", e.N, s.markers)
			return
		}
		s.gone(Event{At: e.At, Until: e.At})
		if s.broken != "" {
			return
		}
	}
	s.worlds, s.markers = []world{{state: Live}}, e.N
}

// mayBeKept: from now on the daemon may carry the unpublish out. One that is kept
// already keeps its deadline.
func (s *Story) mayBeKept(e Event) {
	if s.May(Live) {
		s.become(world{state: Kept, earliest: e.At.Add(e.Lifespan), lifespan: e.Lifespan})
	}
}

// answered: the unpublish was carried out by now.
func (s *Story) answered(at time.Time) {
	s.worlds = slices.DeleteFunc(s.worlds, func(w world) bool { return w.state == Live })
	s.close(at)
}

// close ends the unpublishes that are without an answer.
func (s *Story) close(at time.Time) {
	for i, w := range s.worlds {
		if w.state == Kept && w.latest.IsZero() {
			s.worlds[i].latest = at.Add(w.lifespan)
		}
	}
}

// cut: a call without an answer was carried out before, or was not. That data was
// seen to be gone promises nothing, the daemon has to see to it again.
func (s *Story) cut(at time.Time) {
	s.close(at)
	s.down = true
	for i := range s.worlds {
		s.worlds[i].gone = false
	}
}

// whole: the data is there at this time.
func (s *Story) whole(at time.Time) {
	fitting := slices.DeleteFunc(slices.Clone(s.worlds), func(w world) bool {
		return w.state == Absent || w.gone || s.late(w, at)
	})
	if len(fitting) > 0 {
		s.worlds = fitting
		return
	}
	switch i := slices.IndexFunc(s.worlds, func(w world) bool { return s.late(w, at) }); {
	case i >= 0:
		s.breaks("its deadline was %s at the latest, and it is still there at %s", Clock(s.worlds[i].latest), Clock(at))
	default:
		s.breaks("it came back: it is there at %s", Clock(at))
	}
}

// late tells whether data should be gone by a time. Without a daemon nobody could
// see to that.
func (s *Story) late(w world, at time.Time) bool {
	if w.state != Kept || w.latest.IsZero() || s.down {
		return false
	}
	limit := w.latest
	if s.ready.After(limit) {
		limit = s.ready
	}
	return at.After(limit.Add(s.tolerance))
}

// gone: there is no data at the end of the look. Without markers nothing was
// promised: the directory itself is nobody's data.
func (s *Story) gone(e Event) {
	var fitting []world
	for _, w := range s.worlds {
		switch {
		case w.state == Absent:
		case w.state == Kept && !w.earliest.After(e.Until):
			w.gone = true
		case s.markers > 0:
			continue
		}
		fitting = append(fitting, w)
	}
	if len(fitting) > 0 {
		s.worlds = fitting
		return
	}
	if s.May(Kept) {
		s.breaks("its deadline is %s at the earliest, and it is gone at %s", Clock(s.Earliest()), Clock(e.Until))
		return
	}
	s.breaks("it is published, and its data is gone at %s", Clock(e.Until))
}

// Earliest is the first moment at which the data may go; zero if it may not.
func (s *Story) Earliest() time.Time {
	var first time.Time
	for _, w := range s.worlds {
		if w.state == Kept && (first.IsZero() || w.earliest.Before(first)) {
			first = w.earliest
		}
	}
	return first
}

// Clock is how stories give the time.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// Told is the story for people: of looks that saw the same, one after the other,
// the first and the last.
func (s *Story) Told() []Event {
	var told []Event
	for i, e := range s.events {
		same := func(j int) bool { return j >= 0 && j < len(s.events) && s.events[j].What == e.What }
		if (e.What == Whole || e.What == Gone) && same(i-1) && same(i+1) {
			continue
		}
		told = append(told, e)
	}
	return told
}
