package lifespan

import "github.com/katbox/katbox/internal/volume"

// Making is the account of the room that deletions make: how much a file system
// lacks, and how much is on its way. Room is on its way from the moment that a
// volume is chosen until a measurement shows it, which is only once the volume is
// erased.
//
// It lets several volumes go at once where one would not be enough, and no more
// than that: a volume of a known size counts as room before it is erased.
type Making struct {
	// lacking is by the last measurement; known says that there was one.
	lacking volume.Size
	known   bool
	// falling: less was free then than at the one before.
	falling bool
	// deleting are the deletions that have not ended. erasing have, and a measurement
	// was not asked for since; asked is for those before.
	deleting, erasing, asked sum
}

// NewMaking returns the account of a daemon that was just started. What an earlier
// one left in the trash is room on its way, of an unknown size.
func NewMaking() Making { return Making{erasing: sum{volumes: 1, unknown: 1}} }

// sum is of several volumes.
type sum struct {
	volumes int
	// unknown are those of them whose size is not known.
	unknown int
	size    volume.Size
}

func (s *sum) add(a Asleep) {
	s.volumes++
	if !a.Measured {
		s.unknown++
	}
	s.size = s.size.Add(a.Size)
}

func (s *sum) drop(a Asleep) {
	s.volumes--
	if !a.Measured {
		s.unknown--
	}
	s.size = s.size.Sub(a.Size)
}

func (s sum) plus(t sum) sum {
	return sum{s.volumes + t.volumes, s.unknown + t.unknown, s.size.Add(t.size)}
}

func (m *Making) onItsWay() sum { return m.deleting.plus(m.erasing).plus(m.asked) }

// Begin notes that a volume is being deleted.
func (m *Making) Begin(a Asleep) {
	m.deleting.add(a)
	m.falling = false
}

// End notes that a volume's deletion has ended; deleted tells whether it did what it
// should.
func (m *Making) End(a Asleep, deleted bool) {
	m.deleting.drop(a)
	if deleted {
		m.erasing.add(a)
	}
}

// Ask notes that a measurement is asked for which shows all that was deleted.
func (m *Making) Ask() {
	m.asked = m.asked.plus(m.erasing)
	m.erasing = sum{}
}

// Measured notes what a measurement showed: how much is lacking. answer tells
// whether it is the one that was asked for.
func (m *Making) Measured(lacking volume.Size, answer bool) {
	if answer {
		m.asked = sum{}
	}
	m.falling = m.known && (lacking.Bytes > m.lacking.Bytes || lacking.Inodes > m.lacking.Inodes)
	m.lacking, m.known = lacking, true
}

// Unshown tells whether a deletion has ended that no measurement was asked for since.
func (m *Making) Unshown() bool { return m.erasing.volumes > 0 }

// Settled tells whether no room is on its way: the last measurement shows all that
// was deleted.
func (m *Making) Settled() bool { return m.known && m.onItsWay().volumes == 0 }

// Lacks tells whether more is lacking than is on its way. How much a volume of an
// unknown size makes shows only later: such a one is waited for, unless the free
// space goes on falling meanwhile.
func (m *Making) Lacks() bool {
	coming := m.onItsWay()
	if coming.unknown > 0 && !m.falling {
		return false
	}
	return m.lacking.Bytes > coming.size.Bytes || m.lacking.Inodes > coming.size.Inodes
}
