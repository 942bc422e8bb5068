package lifespan

import (
	"fmt"
	"math"
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// Space is what a file system has of one thing: bytes or inodes.
type Space struct {
	// Total is all there is. It is 0 for a file system that sets no limit,
	// such as one that makes inodes as they are needed.
	Total uint64
	// Free is what the daemon may still use.
	Free uint64
}

const (
	// margin is the share of the total between the kubelet's line and the floor. The
	// kubelet looks every ten seconds, and the disk is measured every second when it
	// is nearly full: at 1 GB/s the margin is enough for disks from 50 GB on.
	margin = 0.02
	// rise is the share of the headroom, above the floor, up to which room is made at
	// once.
	rise = 0.1
)

// Marks are amounts of free bytes, or of free inodes, that mean something. All are
// between 0 and the total.
type Marks struct {
	// Line: with less the kubelet evicts pods.
	Line float64
	// Floor: with no more than this retained volumes go at once.
	Floor float64
	// Wanted is how much should stay free: with less retained volumes go earlier.
	Wanted float64
}

// Marks returns the marks of s, when the given share of the total is to stay free
// above the floor. Without a headroom nothing goes early, whatever the line is; a
// thing without a limit is never scarce.
func (s Space) Marks(headroom float64, line Amount) Marks {
	total := float64(s.Total)
	m := Marks{Line: min(math.Ceil(line.Of(s.Total)), total)}
	if headroom == 0 || s.Total == 0 {
		return m
	}
	if line != (Amount{}) {
		m.Floor = min(m.Line+math.Ceil(total*margin), total)
	}
	m.Wanted = min(m.Floor+math.Ceil(total*headroom), total)
	return m
}

// Factor returns the pressure factor for the given free space, between 0 and 1: 1 with
// as much as wanted, 0 at the floor, linear between.
func (m Marks) Factor(free uint64) float64 {
	switch f := float64(free); {
	case f >= m.Wanted:
		return 1
	case f <= m.Floor:
		return 0
	default:
		return (f - m.Floor) / (m.Wanted - m.Floor)
	}
}

// Lacking returns how much has to come free at once, up to a tenth of the headroom
// above the floor; 0 when that is free.
func (m Marks) Lacking(free uint64) int64 {
	if m.Wanted <= m.Floor {
		return 0
	}
	return max(int64(math.Ceil(m.Floor+rise*(m.Wanted-m.Floor)-float64(free))), 0)
}

// Limits say how much of a file system should stay free.
type Limits struct {
	// Headroom is a share of the total, between 0 and 1; see [CheckHeadroom].
	Headroom float64
	// Line is the kubelet's.
	Line Line
}

// Check refuses a line that a file system can never keep: everything that is
// retained on it would go at once.
func (l Limits) Check(bytes, inodes Space) error {
	for _, is := range []struct {
		what  string
		space Space
		line  Amount
	}{{"bytes", bytes, l.Line.Bytes}, {"inodes", inodes, l.Line.Inodes}} {
		if m := is.space.Marks(l.Headroom, is.line); m.Wanted > 0 && m.Wanted <= m.Floor {
			return fmt.Errorf("the kubelet's line %s leaves none of the file system's %d %s", l.Line, is.space.Total, is.what)
		}
	}
	return nil
}

// Pressure is how a file system does against its limits.
type Pressure struct {
	// Factor is the smaller of those of bytes and inodes, because running out of
	// either stops every writer.
	Factor float64
	// InodesAreScarcer says that there are fewer inodes than bytes above the floor, as
	// a share of the total.
	InodesAreScarcer bool
	// Lacking is what has to come free at once.
	Lacking volume.Size
	// Bytes and Inodes are the marks.
	Bytes, Inodes Marks
}

// Pressure compares what a file system has with its limits.
func (l Limits) Pressure(bytes, inodes Space) Pressure {
	p := Pressure{Bytes: bytes.Marks(l.Headroom, l.Line.Bytes), Inodes: inodes.Marks(l.Headroom, l.Line.Inodes)}
	p.Factor = min(p.Bytes.Factor(bytes.Free), p.Inodes.Factor(inodes.Free))
	p.InodesAreScarcer = inodes.above(p.Inodes.Floor) < bytes.above(p.Bytes.Floor)
	p.Lacking = volume.Size{Bytes: p.Bytes.Lacking(bytes.Free), Inodes: p.Inodes.Lacking(inodes.Free)}
	return p
}

// above is the share of the total that is free above the floor. What has no limit
// is never scarce.
func (s Space) above(floor float64) float64 {
	if s.Total == 0 {
		return math.Inf(1)
	}
	return (float64(s.Free) - floor) / float64(s.Total)
}

// CheckHeadroom refuses a headroom that is not a share, between 0 and 1.
func CheckHeadroom(h float64) error {
	// Written so that NaN, which compares false with everything, is refused too.
	if h >= 0 && h <= 1 {
		return nil
	}
	return fmt.Errorf("headroom %v is outside of 0..1", h)
}

// Deadline returns when a volume expires that was unpublished at the given
// time, under the given pressure factor (0 to 1). It carries a monotonic clock
// reading if unpublished does.
func Deadline(unpublished time.Time, lifespan time.Duration, factor float64) time.Time {
	if factor >= 1 {
		// Not only faster: the longest durations do not survive a round trip
		// through float64, they come back negative.
		return unpublished.Add(lifespan)
	}
	return unpublished.Add(time.Duration(float64(lifespan) * factor))
}
