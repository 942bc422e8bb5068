package main

import (
	"fmt"
	"slices"
	"time"
)

// state is where a volume is in its life.
type state int

const (
	absent state = iota // the daemon does not know it, and there is no data
	live                // published, or about to be: its data may not go
	kept                // retained
)

// world is a state that a volume may be in.
type world struct {
	state state
	// earliest and latest bound the deadline of one that is kept. While the
	// unpublish is without an answer latest is zero, and the lifespan counts from
	// whenever it is carried out.
	earliest, latest time.Time
	lifespan         time.Duration
	// gone says that its data was seen to be gone.
	gone bool
}

// story is what is known of a volume: the states that it may be in, of which
// there are several while a call is without an answer. What is seen has to fit one
// of them, and those that it does not fit are out.
type story struct {
	// tolerance is how long after its deadline data may still be there.
	tolerance time.Duration

	events  []event
	worlds  []world
	markers int
	// down says that there is no daemon, ready when there was one again.
	down  bool
	ready time.Time
	last  verb
	// broken is the first thing that does not fit; nothing is judged after it.
	broken string
}

func newStory(tolerance time.Duration) *story {
	return &story{tolerance: tolerance, worlds: []world{{state: absent}}}
}

// add goes on with the story.
func (s *story) add(e event) {
	s.events = append(s.events, e)
	if s.broken != "" {
		return
	}
	switch e.what {
	case publish:
		s.become(world{state: live})
	case published:
		s.published(e)
	case wrote:
		s.markers = e.n
	case unpublish:
		s.mayBeKept(e)
	case retained:
		s.answered(e.at)
	case forget:
		s.mayBeKept(e)
		s.answered(e.until)
	case cut:
		s.cut(e.at)
	case ready:
		s.down, s.ready = false, e.at
	case whole:
		s.last = whole
		s.whole(e.at)
	case gone:
		s.last = gone
		s.gone(e)
	case partial:
		s.breaks("its data is not whole: %s", e.text)
	case failed:
		s.breaks("%s", e.text)
	case ended:
		if s.last != gone {
			s.breaks("it is kept for ever: it was still there at the end")
		}
	}
}

func (s *story) breaks(format string, args ...any) { s.broken = fmt.Sprintf(format, args...) }

// become adds a state.
func (s *story) become(w world) {
	if !slices.Contains(s.worlds, w) {
		s.worlds = append(s.worlds, w)
	}
}

// is tells whether the volume can only be in a state.
func (s *story) is(want state) bool {
	return !slices.ContainsFunc(s.worlds, func(w world) bool { return w.state != want })
}

// may tells whether the volume may be in a state.
func (s *story) may(want state) bool {
	return slices.ContainsFunc(s.worlds, func(w world) bool { return w.state == want })
}

// published: with fewer markers than were synced it is a new volume, so the old
// one has to have been over by then.
func (s *story) published(e event) {
	if e.n != s.markers {
		if e.n != 0 {
			s.breaks("published with %d of %d markers", e.n, s.markers)
			return
		}
		s.gone(event{at: e.at, until: e.at})
		if s.broken != "" {
			return
		}
	}
	s.worlds, s.markers = []world{{state: live}}, e.n
}

// mayBeKept: from now on the daemon may carry the unpublish out. One that is kept
// already keeps its deadline.
func (s *story) mayBeKept(e event) {
	if s.may(live) {
		s.become(world{state: kept, earliest: e.at.Add(e.lifespan), lifespan: e.lifespan})
	}
}

// answered: the unpublish was carried out by now.
func (s *story) answered(at time.Time) {
	s.worlds = slices.DeleteFunc(s.worlds, func(w world) bool { return w.state == live })
	s.close(at)
}

// close ends the unpublishes that are without an answer.
func (s *story) close(at time.Time) {
	for i, w := range s.worlds {
		if w.state == kept && w.latest.IsZero() {
			s.worlds[i].latest = at.Add(w.lifespan)
		}
	}
}

// cut: a call without an answer was carried out before, or was not. That data was
// seen to be gone promises nothing, the daemon has to see to it again.
func (s *story) cut(at time.Time) {
	s.close(at)
	s.down = true
	for i := range s.worlds {
		s.worlds[i].gone = false
	}
}

// whole: the data is there at this time.
func (s *story) whole(at time.Time) {
	fitting := slices.DeleteFunc(slices.Clone(s.worlds), func(w world) bool {
		return w.state == absent || w.gone || s.late(w, at)
	})
	if len(fitting) > 0 {
		s.worlds = fitting
		return
	}
	switch i := slices.IndexFunc(s.worlds, func(w world) bool { return s.late(w, at) }); {
	case i >= 0:
		s.breaks("its deadline was %s at the latest, and it is still there at %s", clock(s.worlds[i].latest), clock(at))
	default:
		s.breaks("it came back: it is there at %s", clock(at))
	}
}

// late tells whether data should be gone by a time. Without a daemon nobody could
// see to that.
func (s *story) late(w world, at time.Time) bool {
	if w.state != kept || w.latest.IsZero() || s.down {
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
func (s *story) gone(e event) {
	var fitting []world
	for _, w := range s.worlds {
		switch {
		case w.state == absent:
		case w.state == kept && !w.earliest.After(e.until):
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
	if s.may(kept) {
		s.breaks("its deadline is %s at the earliest, and it is gone at %s", clock(s.earliest()), clock(e.until))
		return
	}
	s.breaks("it is published, and its data is gone at %s", clock(e.until))
}

func (s *story) earliest() time.Time {
	var first time.Time
	for _, w := range s.worlds {
		if w.state == kept && (first.IsZero() || w.earliest.Before(first)) {
			first = w.earliest
		}
	}
	return first
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// told is the story for people: of looks that saw the same, one after the other,
// the first and the last.
func (s *story) told() []event {
	var told []event
	for i, e := range s.events {
		same := func(j int) bool { return j >= 0 && j < len(s.events) && s.events[j].what == e.what }
		if (e.what == whole || e.what == gone) && same(i-1) && same(i+1) {
			continue
		}
		told = append(told, e)
	}
	return told
}
