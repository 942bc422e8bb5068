package story

import (
	"fmt"
	"slices"
	"time"
)

// Story is what is known of a volume: the worlds that it may be in, of which
// there are several while a call is without an answer. What is seen has to fit one
// of them, and those that it does not fit are out.
type Story struct {
	// InPlace says that the daemon may have no room to move what it deletes.
	InPlace bool

	// tolerance is how long after its deadline data may still be there.
	tolerance time.Duration

	events []Event
	worlds []world
	// before are the worlds before the last publish, create or growth was asked for.
	before  []world
	markers int
	// least and most bound the size of a persistent volume.
	least, most int
	// looks says that it has no data of its own.
	looks bool
	// down says that there is no daemon, ready when there was one again.
	down  bool
	ready time.Time
	// hindered is what put deletions off.
	hindered []Event
	last     Verb
	// broken is the first thing that does not fit; nothing is judged after it.
	broken string
}

// New begins the story of a volume that was not asked for yet. Its data may still be there for the tolerance after its
// deadline.
func New(tolerance time.Duration) *Story {
	return &Story{tolerance: tolerance, worlds: []world{{state: Absent}}}
}

// Add goes on with the story.
func (s *Story) Add(e Event) {
	s.events = append(s.events, e)
	if s.broken == "" && !s.call(e) && !s.persistent(e) && !s.event(e) {
		s.sight(e)
	}
}

// call goes on with what was asked and answered.
func (s *Story) call(e Event) bool {
	switch e.What {
	case Publish:
		s.mayBeLive()
	case Published:
		s.published(e)
	case Refused:
		s.worlds, s.most = slices.Clone(s.before), s.least
	case Unpublish:
		s.mayBeKept(e)
	case Retained:
		s.answered(e.At)
	case Attach:
		s.copyKept(func(w *world) { w.attached = true })
	case Attached:
		s.drop(func(w world) bool { return w.state == Kept && !w.attached })
	case Detach:
		s.detach(e)
	case Detached:
		s.drop(func(w world) bool { return w.attached })
		s.close(e.At)
	case Decide:
		s.decide(e)
	case LetGo:
		s.letGo(e)
	case Decided:
		s.drop(func(w world) bool { return w.state >= Kept && w.hold != e.Text })
		s.close(e.At)
	default:
		return false
	}
	return true
}

// event goes on with what happened without a call.
func (s *Story) event(e Event) bool {
	switch e.What {
	case Wrote:
		s.markers = e.N
	case Looks:
		s.looks = true
	case FoundLive:
		s.worlds = []world{{state: Live, shown: true}}
	case FoundKept:
		s.worlds = []world{{state: Kept, earliest: e.At.Add(e.Lifespan), open: true, lifespan: e.Lifespan}}
	case Forget:
		s.mayBeKept(e)
		s.answered(e.Until)
	case Pressed:
		s.copyKept(func(w *world) { w.earliest, w.pinned = e.At, time.Time{} })
	case Hindered:
		s.hindered = append(s.hindered, e)
	case Killed, Rebooted, Cut:
		s.died(e)
	case Ready:
		s.down, s.ready = false, e.At
	case Ended:
		if s.last != Gone {
			s.breaks("it is kept for ever: it was still there at the end")
		}
	default:
		return false
	}
	return true
}

// Broken is the first thing that was seen and fits no world; empty for none.
func (s *Story) Broken() string { return s.broken }

// Markers is how many markers the data has to have.
func (s *Story) Markers() int { return s.markers }

// Most is the largest size that a persistent volume may have.
func (s *Story) Most() int { return s.most }

// IsGone reports whether the last look found no data.
func (s *Story) IsGone() bool { return s.last == Gone }

// SeenGone reports whether the data was seen to be gone, and nothing promises it since.
func (s *Story) SeenGone() bool {
	return slices.ContainsFunc(s.worlds, func(w world) bool { return w.gone })
}

// MayBeGone reports whether the data may be gone by a time.
func (s *Story) MayBeGone(by time.Time) bool {
	return slices.ContainsFunc(s.worlds, func(w world) bool { return w.mayBeGone(by) })
}

// Is reports whether the volume can only be in a state.
func (s *Story) Is(want State) bool {
	return !slices.ContainsFunc(s.worlds, func(w world) bool { return w.state != want })
}

// May reports whether the volume may be in a state.
func (s *Story) May(want State) bool {
	return slices.ContainsFunc(s.worlds, func(w world) bool { return w.state == want })
}

// Earliest is the first moment at which the data may go; zero if it may not.
func (s *Story) Earliest() time.Time {
	var first time.Time
	for _, w := range s.worlds {
		if w.state == Kept && !w.attached && (first.IsZero() || w.from().Before(first)) {
			first = w.from()
		}
	}
	return first
}

// Latest is the last moment at which the data may be there, without the tolerance; zero if there is none.
func (s *Story) Latest() time.Time {
	var last time.Time
	for _, w := range s.worlds {
		if w.state == Live || w.endless() || w.attached {
			return time.Time{}
		}
		last = later(last, w.until())
	}
	return last
}

// Limit is until when the data may be there, as far as that is known by now: the tolerance after Latest, put off by what
// hindered the daemon. It is zero if there is none.
func (s *Story) Limit(now time.Time) time.Time {
	var last time.Time
	if s.Latest().IsZero() {
		return last
	}
	for _, w := range s.worlds {
		last = later(last, s.limit(w, now))
	}
	return last
}

func (s *Story) breaks(format string, args ...any) { s.broken = fmt.Sprintf(format, args...) }

// Clock is how stories give the time, in the zone that it has.
func Clock(t time.Time) string { return t.Format("15:04:05.000") }

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
