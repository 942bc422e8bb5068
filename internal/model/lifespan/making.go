package lifespan

import (
	"maps"
	"math"

	"github.com/katbox/katbox/internal/model/volume"
)

// Making is the account of the room that deletions make: how much a file system lacks, and how much
// is on its way. Room is on its way from the moment that a volume is chosen until a measurement
// after it was erased. So several volumes go at once if one would not be enough, and no more. The
// zero Size is that of a volume whose size is not known.
type Making struct {
	// lacking is what the last measurement showed, and short what of this is missing up to the brink.
	lacking, short volume.Size
	known          bool // there was one
	falling        bool // less was free then than at the measurement before
	// each is what is on its way, and all are the sums of each stage.
	each map[volume.ID]onItsWay
	all  [asked + 1]sum
	// early are those of them that go early. yield is what came of those before, futile the last verdict, and
	// proven how many made room since the last bad one, or since there was no pressure.
	early  sum
	yield  Yield
	futile bool
	proven int
}

// onItsWay is room on its way.
type onItsWay struct {
	size  volume.Size
	early bool
	stage
}

// stage says how far room on its way is.
type stage uint8

const (
	// deleting: the deletion has not ended.
	deleting stage = iota
	// erasing: it has, and no measurement was asked for since.
	erasing
	// asked: it ended before the measurement was asked for that will show it.
	asked
)

// earlier stands for what an earlier process left in the trash.
const earlier = volume.ID("")

// NewMaking returns the account of a daemon that was just started. What an earlier one left in the
// trash is room on its way, of an unknown size.
func NewMaking() Making {
	m := Making{each: map[volume.ID]onItsWay{}}
	m.put(earlier, onItsWay{stage: erasing})
	return m
}

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

func (m *Making) put(id volume.ID, v onItsWay) {
	m.drop(id)
	m.each[id] = v
	m.all[v.stage] = m.all[v.stage].plus(of(v.size))
	if v.early {
		m.early = m.early.plus(of(v.size))
	}
}

func (m *Making) drop(id volume.ID) {
	if v, ok := m.each[id]; ok {
		delete(m.each, id)
		m.all[v.stage] = m.all[v.stage].minus(of(v.size))
		if v.early {
			m.early = m.early.minus(of(v.size))
		}
	}
}

// advance moves what is on its way to a stage.
func (m *Making) advance(id volume.ID, v onItsWay, to stage) {
	v.stage = to
	m.put(id, v)
}

// show drops what a measurement shows.
func (m *Making) show(id volume.ID) {
	if v, ok := m.each[id]; ok && v.early {
		m.yield.Shown(v.size)
	}
	m.drop(id)
}

func (m *Making) onItsWay() sum { return m.all[deleting].plus(m.all[erasing]).plus(m.all[asked]) }

// Begin notes that a volume of this size is being deleted, and whether it goes early.
func (m *Making) Begin(id volume.ID, size volume.Size, early bool) {
	m.put(id, onItsWay{size: size, early: early})
	m.falling = false
}

// End notes that a volume's deletion has ended, and whether it succeeded.
func (m *Making) End(id volume.ID, deleted bool) {
	v, ok := m.each[id]
	switch {
	case !ok: // it is erased already
	case deleted:
		m.advance(id, v, erasing)
	default:
		m.drop(id)
	}
}

// Ask notes that a measurement was asked for that will show all that was deleted.
func (m *Making) Ask() {
	for id, v := range maps.Clone(m.each) {
		if v.stage == erasing {
			m.advance(id, v, asked)
		}
	}
}

// Measured notes what was lacking at a measurement, and what of this was missing up to the brink.
// The measurement shows what those volumes took that are erased, and that so much came free since
// the one before. answer: it is the one that was asked for.
func (m *Making) Measured(lacking, short, came volume.Size, answer bool, erased ...volume.ID) {
	switch {
	case m.early.volumes > 0:
		m.yield.came(came, m.early)
	case m.yield.Volumes == 0:
		m.yield.Came = volume.Size{} // it was of something else
	}
	for _, id := range erased {
		m.show(id)
	}
	if answer && m.all[asked].volumes > 0 {
		for id, v := range maps.Clone(m.each) {
			if v.stage == asked {
				m.show(id)
			}
		}
	}
	m.falling = m.known && (lacking.Bytes > m.lacking.Bytes || lacking.Inodes > m.lacking.Inodes)
	m.lacking, m.short, m.known = lacking, short, true
}

// Judge judges what was deleted early, after a measurement. After a bad verdict the next volume is judged alone.
// Without pressure there is no bad verdict, and those that were not judged are forgotten. What came may then be of
// others that are on their way, and have to be judged once there is pressure again.
func (m *Making) Judge(pressure bool) Verdict {
	after := fewDeletions
	switch {
	case !pressure:
		after = math.MaxInt
	case m.futile:
		after = 1
	}
	volumes := m.yield.Volumes
	verdict := m.yield.Judge(m.lacking, after)
	switch verdict {
	case MakesRoom:
		m.futile, m.proven = false, m.proven+volumes
	case MakesNone:
		m.futile, m.proven = true, 0
	}
	if !pressure {
		came := m.yield.Came
		if m.early.volumes == 0 {
			came = volume.Size{}
		}
		m.yield, m.proven = Yield{Came: came}, 0
	}
	return verdict
}

// GiveUp takes deletions to make no room, returns what came of the last ones, and begins anew.
func (m *Making) GiveUp() Yield {
	y := m.yield
	m.yield, m.futile, m.proven = Yield{}, true, 0
	return y
}

// Yield returns what came of those that were not judged yet.
func (m *Making) Yield() Yield { return m.yield }

// Trust forgets the last verdict: what has caused it may be over.
func (m *Making) Trust() { m.futile = false }

// Early is how many volumes that go early are on their way.
func (m *Making) Early() int { return m.early.volumes }

// MayBegin reports whether one more of the retained volumes may go early, before it is known whether
// those before make room. As many may be on their way as have made room before, and half of what is
// retained at most.
func (m *Making) MayBegin(retained int) bool {
	unproven := m.early.volumes
	if enough, known := m.yield.enough(m.lacking); known && !enough {
		unproven += m.yield.Volumes
	}
	return unproven < max(fewDeletions, retained/batchPart, min(m.proven, retained/2))
}

// Doubtful reports whether what has gone early has made no room so far.
func (m *Making) Doubtful() bool {
	enough, _ := m.yield.enough(m.lacking)
	return m.futile || m.early.volumes > 0 || m.yield.Volumes > 0 && !enough
}

// Enough reports whether the last measurement showed that nothing is lacking.
func (m *Making) Enough() bool { return m.lacking == volume.Size{} }

// AtBrink reports whether the last measurement showed a file system that is all but full, so that
// guaranteed volumes may go.
func (m *Making) AtBrink() bool { return m.short != volume.Size{} }

// Unshown reports whether a deletion has ended since a measurement was asked for last.
func (m *Making) Unshown() bool { return m.all[erasing].volumes > 0 }

// Settled reports whether no room is on its way: the last measurement shows all that was deleted.
func (m *Making) Settled() bool { return m.known && m.onItsWay().volumes == 0 }

// Lacks reports whether more is lacking than is on its way. How much room a volume of an unknown
// size makes shows only later: it waits for that volume, unless free space goes on falling
// meanwhile.
func (m *Making) Lacks() bool { return m.exceeds(m.lacking) }

// LacksBrink is Lacks, where the room is only what is missing up to the brink.
func (m *Making) LacksBrink() bool { return m.exceeds(m.short) }

// exceeds reports whether the room that is wanted is more than what is on its way.
func (m *Making) exceeds(wanted volume.Size) bool {
	coming := m.onItsWay()
	if coming.unknown > 0 && !m.falling {
		return false
	}
	return wanted.Bytes > coming.size.Bytes || wanted.Inodes > coming.size.Inodes
}
