package lifespan

import (
	"fmt"
	"math"
	"time"
)

// Space is what a file system has of one thing: bytes or inodes.
type Space struct {
	// Total is all there is. It is 0 for a file system that sets no limit,
	// such as one that makes inodes as they are needed.
	Total uint64
	// Free is what the daemon may still use.
	Free uint64
}

// Wanted returns how much is to stay free when that is the given share of the
// total. It is rounded up to a whole byte or inode.
func (s Space) Wanted(headroom float64) float64 {
	return math.Ceil(float64(s.Total) * headroom)
}

// Factor returns the pressure factor of s, between 0 and 1, when the given
// share of the total is to stay free: 1 as long as it does, else what is free
// of that share. Without a limit there is no pressure.
func (s Space) Factor(headroom float64) float64 {
	wanted := s.Wanted(headroom)
	free := float64(s.Free)
	if free >= wanted {
		return 1
	}
	return free / wanted
}

// Factor returns the pressure factor of a file system: the smaller of what its
// bytes and its inodes give, because running out of either stops every writer.
func Factor(headroom float64, bytes, inodes Space) float64 {
	return min(bytes.Factor(headroom), inodes.Factor(headroom))
}

// InodesAreScarcer tells whether a smaller share of the inodes is free than of
// the bytes. What has no limit is never scarce.
func InodesAreScarcer(bytes, inodes Space) bool {
	return inodes.share() < bytes.share()
}

func (s Space) share() float64 {
	if s.Total == 0 {
		return math.Inf(1)
	}
	return float64(s.Free) / float64(s.Total)
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
