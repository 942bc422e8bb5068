package story

import "slices"

// persistent goes on with what was asked and answered of a volume that has no lifespan: it is there from its create
// until its delete. What people decided about it is in its record, as for one that is retained.
func (s *Story) persistent(e Event) bool {
	switch e.What {
	case Create:
		s.before = slices.Clone(s.worlds)
		s.become(world{state: Persistent, known: true})
		s.least, s.most = e.N, e.N
	case Created:
		s.drop(func(w world) bool { return w.state == Absent })
		s.sized(e.N)
	case Grow:
		s.before, s.most = slices.Clone(s.worlds), e.N
	case Grown:
		s.least = s.most
		s.sized(e.N)
	case Delete:
		s.become(world{state: Absent})
	case Deleted:
		s.worlds = []world{{state: Absent}}
	default:
		return false
	}
	return true
}

// sized: it has so many bytes. Growth without an answer may still be completed.
func (s *Story) sized(bytes int) {
	if s.broken == "" && (bytes < s.least || bytes > s.most) {
		s.breaks("it has %d bytes, and should have between %d and %d", bytes, s.least, s.most)
		return
	}
	s.least = bytes
}
