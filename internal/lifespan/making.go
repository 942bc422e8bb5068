package lifespan

import "github.com/katbox/katbox/internal/volume"

// Making is the account of the room that deletions make: how much a file system lacks, and how much
// is on its way. Room is on its way from the moment that a volume is chosen until a measurement
// after it was erased. So several volumes go at once if one would not be enough, and no more. The
// zero Size is that of a volume whose size is not known.
type Making struct {
	// lacking is what the last measurement showed, and short what of this is missing up to the floor.
	lacking, short volume.Size
	known          bool // there was one
	falling        bool // less was free then than at the measurement before
	// deleting are the deletions that have not ended. erasing have ended, and no measurement was
	// asked for since. asked ended before the measurement was asked for that will show them.
	deleting, erasing, asked sum
}

// NewMaking returns the account of a daemon that was just started. What an earlier one left in the
// trash is room on its way, of an unknown size.
func NewMaking() Making { return Making{erasing: sum{volumes: 1, unknown: 1}} }

// sum adds up several volumes.
type sum struct {
	volumes int
	unknown int // how many of them have a size that is not known
	size    volume.Size
}

// of returns the sum of one volume.
func of(size volume.Size) sum {
	s := sum{volumes: 1, size: size}
	if size.Inodes == 0 {
		s.unknown = 1
	}
	return s
}

func (s sum) plus(t sum) sum {
	return sum{s.volumes + t.volumes, s.unknown + t.unknown, s.size.Add(t.size)}
}

func (s sum) minus(t sum) sum {
	return sum{s.volumes - t.volumes, s.unknown - t.unknown, s.size.Sub(t.size)}
}

func (m *Making) onItsWay() sum { return m.deleting.plus(m.erasing).plus(m.asked) }

// Begin notes that a volume of this size is being deleted.
func (m *Making) Begin(size volume.Size) {
	m.deleting = m.deleting.plus(of(size))
	m.falling = false
}

// End notes that a volume's deletion has ended, and whether it succeeded.
func (m *Making) End(size volume.Size, deleted bool) {
	m.deleting = m.deleting.minus(of(size))
	if deleted {
		m.erasing = m.erasing.plus(of(size))
	}
}

// Ask notes that a measurement was asked for that will show all that was deleted.
func (m *Making) Ask() {
	m.asked = m.asked.plus(m.erasing)
	m.erasing = sum{}
}

// Measured notes what was lacking at a measurement, and what of this was missing up to the floor.
// answer: it is the one that was asked for.
func (m *Making) Measured(lacking, short volume.Size, answer bool) {
	if answer {
		m.asked = sum{}
	}
	m.falling = m.known && (lacking.Bytes > m.lacking.Bytes || lacking.Inodes > m.lacking.Inodes)
	m.lacking, m.short, m.known = lacking, short, true
}

// Unshown reports whether a deletion has ended since a measurement was asked for last.
func (m *Making) Unshown() bool { return m.erasing.volumes > 0 }

// Settled reports whether no room is on its way: the last measurement shows all that was deleted.
func (m *Making) Settled() bool { return m.known && m.onItsWay().volumes == 0 }

// Lacks reports whether more is lacking than is on its way. How much room a volume of an unknown
// size makes shows only later: it waits for that volume, unless free space goes on falling
// meanwhile.
func (m *Making) Lacks() bool { return m.exceeds(m.lacking) }

// LacksFloor is Lacks, where the room is only what is missing up to the floor.
func (m *Making) LacksFloor() bool { return m.exceeds(m.short) }

// exceeds reports whether the room that is wanted is more than what is on its way.
func (m *Making) exceeds(wanted volume.Size) bool {
	coming := m.onItsWay()
	if coming.unknown > 0 && !m.falling {
		return false
	}
	return wanted.Bytes > coming.size.Bytes || wanted.Inodes > coming.size.Inodes
}
