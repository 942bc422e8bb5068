// Package lifespan is the arithmetic of how long retained volumes are kept: the pressure factor,
// deadlines, the free space that the kubelet wants, how fast a disk fills, and how much of what is
// lacking is on its way.
//
// A retained volume expires at
//
//	unpublished + lifespan x factor
//
// The factor is 1 while the headroom is free, and falls linearly to 0 at the floor. So pressure
// shortens every lifespan by the same share. Below the floor no deadline counts: room is made. The
// package does no I/O, keeps no volumes and never asks for the time.
package lifespan

import (
	"fmt"
	"math"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// margin is the share of the total between the kubelet's line and the floor. The kubelet looks
	// every ten seconds. At 1 GB/s the margin is enough for disks from 50 GB on.
	margin = 0.02
	// One part in urgent of the headroom, above the floor, has to be free at once.
	urgent = 10
	// On a disk without a line the floor is one part in floorPart of the headroom, and the brink one
	// part in brinkPart.
	floorPart, brinkPart = 2, 4
)

// Limits say how much of a file system should stay free.
type Limits struct {
	Headroom float64 // a share of the total, between 0 and 1
	Line     Line    // the kubelet's
	Burst    Burst
}

// Pressure compares the free space of a file system with its limits.
type Pressure struct {
	// Factor is the smaller of those of bytes and inodes: without either all writers stop.
	Factor float64
	// InodesAreScarcer: fewer inodes than bytes are free above the floor, as a share of the total.
	InodesAreScarcer bool
	Lacking          volume.Size // has to come free at once
	Short            volume.Size // of this, up to the brink
	Line             volume.Size // with less free the kubelet evicts pods
	Floor            volume.Size // with no more free, retained volumes go at once
	Wanted           volume.Size // with less free, retained volumes go earlier
	// Of is what the last three are of: the file system, or a quota on it.
	Of volume.Space
	// above is the share of this that is free above the floor.
	above float64
}

// Pressure compares the free space of a file system with its limits. soon is how much may be written
// before deletions make room; see [Burst.Soon]. A quota and the disk below it are two file systems of which only the
// disk has the kubelet's line; the one with less room decides, and both get what they lack.
func (l Limits) Pressure(is volume.Space, soon volume.Size) Pressure {
	views := l.views(is)
	p := views[0].pressure(soon)
	for _, v := range views[1:] {
		q := v.pressure(soon)
		lacking, short := p.Lacking.Max(q.Lacking), p.Short.Max(q.Short)
		if q.Factor < p.Factor || q.Factor == p.Factor && q.above < p.above {
			p = q
		}
		p.Lacking, p.Short = lacking, short
	}
	return p
}

// view is a file system, or a quota, with what holds for it.
type view struct {
	Limits
	volume.Space
}

func (l Limits) views(is volume.Space) []view {
	if is.DiskTotal == (volume.Size{}) {
		return []view{{l, is}}
	}
	own := l
	own.Line = Line{}
	return []view{
		{own, volume.Space{Total: is.Total, Free: is.Free}}, {l, volume.Space{Total: is.DiskTotal, Free: is.DiskFree}},
	}
}

func (v view) pressure(soon volume.Size) Pressure {
	bytes, inodes := v.marks(v.Space)
	bytes, inodes = bytes.raised(soon.Bytes), inodes.raised(soon.Inodes)
	is := v.Space
	return Pressure{
		Factor:           min(bytes.factor(is.Free.Bytes), inodes.factor(is.Free.Inodes)),
		InodesAreScarcer: inodes.above(is.Free.Inodes) < bytes.above(is.Free.Bytes),
		Lacking:          volume.Size{Bytes: bytes.lacking(is.Free.Bytes), Inodes: inodes.lacking(is.Free.Inodes)},
		Short:            volume.Size{Bytes: bytes.short(is.Free.Bytes), Inodes: inodes.short(is.Free.Inodes)},
		Line:             volume.Size{Bytes: bytes.line, Inodes: inodes.line},
		Floor:            volume.Size{Bytes: bytes.floor, Inodes: inodes.floor},
		Wanted:           volume.Size{Bytes: bytes.wanted, Inodes: inodes.wanted},
		Of:               is,
		above:            min(bytes.above(is.Free.Bytes), inodes.above(is.Free.Inodes)),
	}
}

// Check refuses a line that a file system can never keep: all that is retained would go at once.
func (l Limits) Check(is volume.Space) error {
	for _, v := range l.views(is) {
		bytes, inodes := v.marks(v.Space)
		switch {
		case bytes.floorIsAll():
			return fmt.Errorf("the kubelet's line %s leaves none of the file system's %d bytes", l.Line, bytes.total)
		case inodes.floorIsAll():
			return fmt.Errorf("the kubelet's line %s leaves none of the file system's %d inodes", l.Line, inodes.total)
		}
	}
	return nil
}

func (l Limits) marks(is volume.Space) (bytes, inodes marks) {
	return marksOf(is.Total.Bytes, l.Headroom, l.Line.Bytes), marksOf(is.Total.Inodes, l.Headroom, l.Line.Inodes)
}

// marks are the amounts of free bytes, or of free inodes, that [Pressure] explains. All are between
// 0 and the total, each no less than the one before. At the brink, or below, volumes go that are
// guaranteed.
type marks struct{ total, line, brink, floor, wanted int64 }

// marksOf returns the marks of a file system that should keep the given share of the total free,
// above the kubelet's line if it has one. Without a headroom nothing goes early, whatever the line
// is. A resource without a limit is never scarce.
func marksOf(total int64, headroom float64, line Amount) marks {
	all := float64(total)
	m := marks{total: total, line: upTo(total, line.Of(total))}
	if headroom == 0 || total == 0 {
		return m
	}
	if line != (Amount{}) {
		m.floor = upTo(total, float64(m.line)+math.Ceil(all*margin))
		m.brink = m.floor
		m.wanted = upTo(total, float64(m.floor)+math.Ceil(all*headroom))
		return m
	}
	m.wanted = upTo(total, math.Ceil(all*headroom))
	m.floor, m.brink = m.wanted/floorPart, m.wanted/brinkPart
	return m
}

// raised returns the marks while so much may be written before deletions make room. The floor is
// that far above the kubelet's line then, or above nothing, if that is more; it never exceeds what
// is wanted. The brink stays: a guarantee is not broken for what is only expected.
func (m marks) raised(soon int64) marks {
	if m.wanted > 0 && soon > 0 {
		m.floor = max(m.floor, m.line+min(soon, m.wanted-min(m.line, m.wanted)))
	}
	return m
}

// upTo rounds up, to no more than total.
func upTo(total int64, amount float64) int64 {
	if amount >= float64(total) {
		return total
	}
	return int64(math.Ceil(amount))
}

func (m marks) floorIsAll() bool { return m.wanted > 0 && m.wanted <= m.floor }

// factor is 1 with as much free as wanted, 0 at the floor, and linear between.
func (m marks) factor(free int64) float64 {
	switch {
	case free >= m.wanted:
		return 1
	case free <= m.floor:
		return 0
	default:
		return float64(free-m.floor) / float64(m.wanted-m.floor)
	}
}

// lacking is what has to come free at once.
func (m marks) lacking(free int64) int64 {
	if m.wanted <= m.brink || free >= m.wanted {
		return 0
	}
	// Written so that it rounds up without an overflow.
	return max(m.floor+(m.wanted-m.floor-1)/urgent+1-free, 0)
}

// short is what is missing up to the brink. At the brink it is not reached, so that something is.
func (m marks) short(free int64) int64 {
	if m.wanted <= m.brink {
		return 0
	}
	return max(m.brink+1-free, 0)
}

// above is the share of the total that is free above the floor.
func (m marks) above(free int64) float64 {
	if m.total == 0 {
		return math.Inf(1)
	}
	return float64(free-m.floor) / float64(m.total)
}

// CheckHeadroom refuses a headroom that is not a share, between 0 and 1.
func CheckHeadroom(h float64) error {
	// NaN compares false with everything, so this refuses it too.
	if h >= 0 && h <= 1 {
		return nil
	}
	return fmt.Errorf("headroom %v is outside of 0..1", h)
}

// Deadline returns when a volume expires that was unpublished at the given time, under the given
// pressure factor (0 to 1). It carries a monotonic clock reading if unpublished does.
func Deadline(unpublished time.Time, lifespan time.Duration, factor float64) time.Time {
	return unpublished.Add(Shortened(lifespan, 0, factor))
}

// Due returns how long after its unpublish a retained volume goes under the given pressure factor (0
// to 1). least is how long each is kept that no person has released. Pressure makes no volume go
// before its pin ends. It leaves a released one its grace, except at factor 0.
func Due(r volume.Record, least time.Duration, factor float64) time.Duration {
	switch r.Hold.Kind {
	case volume.Pinned:
		return max(r.Hold.For, Shortened(r.Lifespan, least, factor))
	case volume.Released:
		if factor <= 0 {
			return 0
		}
		return r.Keep()
	}
	return Shortened(r.Lifespan, least, factor)
}

// Shortened returns what the given pressure factor (0 to 1) leaves of a lifespan: no less than least,
// if the lifespan is not shorter.
func Shortened(lifespan, least time.Duration, factor float64) time.Duration {
	if factor >= 1 {
		// The longest durations come back from float64 negative.
		return lifespan
	}
	return max(time.Duration(float64(lifespan)*factor), min(least, lifespan))
}
