package story

import (
	"slices"
	"time"
)

// State is where a volume is in its life.
type State int

// The states.
const (
	Absent     State = iota // the daemon does not know it, and there is no data
	Live                    // published, or about to be: its data may not go
	Kept                    // retained
	Persistent              // there until it is deleted
)

// world is a state that a volume may be in.
type world struct {
	state State
	// shown: its pod sees it.
	shown bool
	// known: there is a record, until it may be gone.
	known bool
	// attached: another pod sees it while it is retained.
	attached bool
	// hold is what a person decided about it; empty for nothing.
	hold string
	// earliest and latest bound the deadline of one that is kept. It is open while the call that gives it a lifespan
	// is without an answer: the lifespan counts from whenever that is carried out.
	earliest, latest time.Time
	open             bool
	lifespan         time.Duration
	// most bounds the deadline while it is open, if that call only makes it go sooner; zero if nothing does.
	most time.Time
	// pinned is until when it is kept in any case, by what a person decided.
	pinned time.Time
	// gone says that its data was seen to be gone.
	gone bool
}

// from is the first moment at which it may go, until the last one.
func (w world) from() time.Time  { return later(w.earliest, w.pinned) }
func (w world) until() time.Time { return later(later(w.latest, w.most), w.pinned) }

// endless reports whether nothing bounds its deadline.
func (w world) endless() bool { return w.open && w.most.IsZero() }

// mayBeGone reports whether its data may be gone by a time.
func (w world) mayBeGone(by time.Time) bool {
	return w.state == Absent || w.state == Kept && !w.attached && !w.from().After(by)
}

// become adds a world.
func (s *Story) become(w world) {
	if !slices.Contains(s.worlds, w) {
		s.worlds = append(s.worlds, w)
	}
}

// copyKept adds a copy of each world in which the data is kept, or persistent, with a change.
func (s *Story) copyKept(change func(*world)) {
	for _, w := range slices.Clone(s.worlds) {
		if w.state >= Kept {
			change(&w)
			s.become(w)
		}
	}
}

// mayBeLive: from now on the daemon may carry the publish out.
func (s *Story) mayBeLive() {
	s.before = slices.Clone(s.worlds)
	if !s.May(Live) {
		s.become(world{state: Live, known: s.known()})
	}
}

// known reports whether there is a record in all worlds.
func (s *Story) known() bool {
	return !slices.ContainsFunc(s.worlds, func(w world) bool { return !w.known })
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
	s.worlds, s.markers = []world{{state: Live, shown: true, known: true}}, e.N
}

// mayBeKept: from now on the daemon may carry the unpublish out. One that is kept
// already keeps its deadline.
func (s *Story) mayBeKept(e Event) {
	if !s.May(Live) {
		return
	}
	for i := range s.worlds {
		s.worlds[i].shown = false
	}
	if s.looks {
		s.become(world{state: Absent})
		return
	}
	s.become(world{state: Kept, known: s.known(), earliest: e.At.Add(e.Lifespan), open: true, lifespan: e.Lifespan})
}

// answered: the unpublish was carried out by now.
func (s *Story) answered(at time.Time) {
	s.drop(func(w world) bool { return w.state == Live })
	for i, w := range s.worlds {
		s.worlds[i].known = w.state == Kept
	}
	s.close(at)
}

func (s *Story) drop(out func(world) bool) { s.worlds = slices.DeleteFunc(s.worlds, out) }

// close ends the calls that are without an answer.
func (s *Story) close(at time.Time) {
	for i := range s.worlds {
		if w := &s.worlds[i]; w.open {
			latest := later(w.latest, at.Add(w.lifespan))
			if !w.most.IsZero() && w.most.Before(latest) {
				latest = w.most
			}
			w.open, w.latest, w.most = false, latest, time.Time{}
		}
	}
}

// detach: from now on the daemon may end that another pod sees it.
func (s *Story) detach(e Event) {
	s.copyKept(func(w *world) {
		if w.attached {
			w.attached, w.earliest = false, later(w.earliest, e.At.Add(e.Lifespan))
			w.open, w.lifespan, w.most = true, e.Lifespan, time.Time{}
		}
	})
}

// decide: from now on it may be that it is held so, and kept for a lifespan at least.
func (s *Story) decide(e Event) {
	s.copyKept(func(w *world) {
		w.hold, w.pinned = e.Text, time.Time{}
		if e.Lifespan > 0 {
			w.pinned = e.At.Add(e.Lifespan)
		}
	})
}

// letGo: from now on it may be that it is held so, and goes sooner.
func (s *Story) letGo(e Event) {
	s.copyKept(func(w *world) {
		w.hold = e.Text
		if soon := e.At.Add(e.Lifespan); soon.Before(w.from()) {
			most := time.Time{}
			if !w.endless() {
				most = w.until()
			}
			w.earliest, w.latest, w.open, w.lifespan, w.most, w.pinned = soon, time.Time{}, true, e.Lifespan, most, time.Time{}
		}
	})
}

// died: a call without an answer was carried out before, or was not.
func (s *Story) died(e Event) {
	s.close(e.At)
	s.down = true
	for i := range s.worlds {
		if e.What != Killed {
			s.worlds[i].shown = false
		}
		if e.What == Cut {
			// That it was seen promises nothing: the daemon has to see to it again.
			s.worlds[i].gone = false
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
