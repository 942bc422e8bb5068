package story

import (
	"slices"
	"time"
)

// sight judges what was seen.
func (s *Story) sight(e Event) {
	switch e.What {
	case Whole:
		s.last = Whole
		s.whole(e.At)
	case Partial:
		s.last = Partial
		if s.InPlace && s.MayBeGone(e.Until) {
			s.gone(e)
			return
		}
		s.breaks("its data is not whole: %s", e.Text)
	case Empty:
		s.last = Empty
		s.empty(e)
	case Gone:
		s.last = Gone
		s.gone(e)
	case Shown, Wrong, Missing:
		s.mount(e)
	case KnownLive, KnownKept, KnownGoing, Unknown:
		s.record(e)
	case Listed:
		s.record(e)
		s.sized(e.N)
	case Failed:
		s.breaks("%s", e.Text)
	}
}

// fits keeps the worlds that fit what was seen, and reports whether there are any. Without any all stay.
func (s *Story) fits(fits func(world) bool) bool {
	fitting := slices.DeleteFunc(slices.Clone(s.worlds), func(w world) bool { return !fits(w) })
	if len(fitting) > 0 {
		s.worlds = fitting
	}
	return len(fitting) > 0
}

// whole: the data is there at this time.
func (s *Story) whole(at time.Time) {
	if s.looks {
		s.breaks("it shows another volume's data, and has data of its own at %s", Clock(at))
		return
	}
	if s.fits(func(w world) bool { return w.state != Absent && !w.gone && !s.late(w, at) }) {
		return
	}
	switch i := slices.IndexFunc(s.worlds, func(w world) bool { return s.late(w, at) }); {
	case i >= 0:
		s.breaks("its deadline was %s at the latest, and it is still there at %s", Clock(s.worlds[i].until()), Clock(at))
	default:
		s.breaks("it came back: it is there at %s", Clock(at))
	}
}

// late reports whether data should be gone by a time. While no daemon runs nothing deletes
// them.
func (s *Story) late(w world, at time.Time) bool {
	if w.state != Kept || w.endless() || w.attached || s.down {
		return false
	}
	return at.After(s.limit(w, at))
}

// limit is until when data may be there, as far as that is known by now. What began when the time was over does not put
// it off.
func (s *Story) limit(w world, now time.Time) time.Time {
	limit := later(w.until(), s.ready).Add(s.tolerance)
	for _, h := range s.hindered {
		until := h.Until
		if until.IsZero() {
			until = now
		}
		if !h.At.After(limit) {
			limit = later(limit, until.Add(h.Lifespan))
		}
	}
	return limit
}

// gone: there is no data at the end of the look. Without markers nothing was
// promised: the directory itself is no data.
func (s *Story) gone(e Event) {
	if s.looks {
		return
	}
	if s.fits(func(w world) bool { return w.mayBeGone(e.Until) || s.markers == 0 }) {
		for i, w := range s.worlds {
			s.worlds[i].gone = w.state == Kept && w.mayBeGone(e.Until)
		}
		return
	}
	switch attached := func(w world) bool { return w.attached }; {
	case slices.ContainsFunc(s.worlds, attached):
		s.breaks("a pod has it attached, and it is gone at %s", Clock(e.Until))
	case s.May(Persistent):
		s.breaks("it was not deleted, and its data is gone at %s", Clock(e.Until))
	case s.May(Kept):
		s.breaks("its deadline is %s at the earliest, and it is gone at %s", Clock(s.Earliest()), Clock(e.Until))
	default:
		s.breaks("it is published, and its data is gone at %s", Clock(e.Until))
	}
}

// empty: a publish without an answer has made a new volume, after the old one had gone.
func (s *Story) empty(e Event) {
	if s.markers > 0 {
		if !s.May(Live) || !s.MayBeGone(e.Until) {
			s.breaks("its data is gone from its directory at %s", Clock(e.Until))
			return
		}
		s.worlds, s.markers = []world{{state: Live}}, 0
	}
	s.whole(e.At)
}

// mount: the pod sees the volume, something else, or nothing.
func (s *Story) mount(e Event) {
	switch {
	case s.fits(func(w world) bool {
		switch e.What {
		case Shown:
			return w.state == Live
		case Wrong: // a publish is half done
			return w.state == Live && !w.shown
		default:
			return !w.shown
		}
	}):
	case e.What == Missing:
		s.breaks("it is published, and is not mounted at %s", Clock(e.Until))
	case s.May(Live):
		s.breaks("its pod sees: %s", e.Text)
	default:
		s.breaks("no pod has it, and it is mounted at %s", Clock(e.Until))
	}
}

// record: there is a record that says so, or none.
func (s *Story) record(e Event) {
	if !s.fits(func(w world) bool {
		switch e.What {
		case KnownLive:
			return w.state == Live
		case KnownKept: // a volume is recorded as deleting before its data goes
			return w.state == Kept && w.hold == e.Text && (!w.gone || s.markers == 0)
		case Listed:
			return w.state == Persistent && w.hold == e.Text
		case KnownGoing:
			return w.state != Absent && (w.mayBeGone(e.Until) || s.markers == 0)
		default:
			return !w.known || w.mayBeGone(e.Until)
		}
	}) {
		s.breaks("at %s there is: %s; that may only be: %s", Clock(e.Until), describe(e), s.possible())
	}
}

func describe(e Event) string {
	if e.Text != "" {
		return string(e.What) + ", held as " + e.Text
	}
	return string(e.What)
}

// possible is what the volume may be, for people.
func (s *Story) possible() string {
	text := ""
	for _, w := range s.worlds {
		if text != "" {
			text += ", or "
		}
		switch {
		case w.state == Absent:
			text += "nothing"
		case w.state == Live:
			text += "published"
		case w.state == Persistent:
			text += string(Listed)
		case w.attached:
			text += "attached"
		case w.gone:
			text += "deleted"
		default:
			text += "retained until " + Clock(w.from())
		}
		if w.hold != "" {
			text += ", held as " + w.hold
		}
	}
	return text
}
