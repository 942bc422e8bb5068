package store

import (
	"bytes"
	"hash/fnv"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxAge bounds how long ago a time is. Before 1885 a time.Time has no room for a monotonic
// reading, and a clock that was never set says 1970.
const maxAge = 80 * 365 * 24 * time.Hour

// maxJitter is how far a time that was worked out may be from the stored time of the wall clock and
// still be the same: two clocks cannot be read at once. The lists of volumes are ordered by the wall
// clock, and continue after a restart where they were.
const maxJitter = 10 * time.Millisecond

// clock tells how long ago something was, across a restart too; see [timeline].
type clock struct {
	boot     uint64                // a number for this boot; 0 if unknown: the wall clock decides
	boottime func() (int64, error) // reads CLOCK_BOOTTIME
	now      func() time.Time
	line     timeline // what records are written and read by
	rebooted bool     // the last look was in an earlier boot
}

// moment is an instant by both clocks.
type moment struct {
	now      time.Time
	boot     uint64 // 0 if boottime is unknown
	boottime int64  // the reading in nanoseconds at now, in that boot
	line     timeline
}

// kernelClock returns the clock of this process. Its boot cannot change.
func kernelClock() clock {
	return clock{boot: readBoot(), boottime: readBoottime, now: time.Now}
}

func readBoottime() (int64, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return ts.Nano(), err
}

// readBoot returns a number for this boot of the kernel and its time namespace, which shifts
// CLOCK_BOOTTIME. It is 0 where /proc does not say, as in some sandboxes.
func readBoot() uint64 {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	namespace, _ := os.Readlink("/proc/self/ns/time") // old kernels have none
	return bootNumber(id, namespace)
}

func bootNumber(id []byte, namespace string) uint64 {
	id = bytes.TrimSpace(id)
	if len(id) == 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write(id)
	_, _ = h.Write([]byte(namespace))
	return h.Sum64()
}

// writing returns the moment at which records are written. It reads the wall clock first: a delay
// until the other reading makes a record look younger, never older.
func (c clock) writing() moment { return c.at(c.now()) }

// reading returns the moment at which records are read, for a now that may be a while ago. It reads
// last how long ago: a delay makes a record look younger, never older.
func (c clock) reading(now time.Time) moment {
	m := c.at(now)
	m.boottime -= int64(c.now().Sub(now))
	return m
}

// at adds a reading of CLOCK_BOOTTIME to now.
func (c clock) at(now time.Time) moment {
	if c.boot != 0 {
		if boottime, err := c.boottime(); err == nil {
			return moment{now: now, boot: c.boot, boottime: boottime, line: c.line}
		}
	}
	return moment{now: now}
}

// stored returns what is on disk for t. The reading is negative if t is before the boot that the
// timeline began in.
func (m moment) stored(t time.Time) (wall int64, boot uint64, reading int64) {
	wall = toWall(t)
	if wall == 0 || m.boot == 0 {
		return wall, 0, 0
	}
	// If t has no monotonic reading, as one of the old driver, the wall clock decides here, and not
	// any more from now on.
	age := min(max(m.now.Sub(t), 0), maxAge)
	boot, reading = m.reading()
	return wall, boot, reading - int64(age)
}

// time returns a stored time, whose wall clock is not negative, on the clock of m.now. If that
// carries a monotonic reading so does the result, which is never after it.
func (m moment) time(wall int64, boot uint64, reading int64) time.Time {
	if wall == 0 {
		return time.Time{}
	}
	age := time.Duration(m.now.UnixNano() - wall)
	if now, ok := m.readingOf(boot); ok {
		byWall := age
		// A reading of the future counts as now. So does one that is so far back that the
		// difference overflows.
		age = 0
		if reading < now {
			age = min(time.Duration(now-reading), maxAge)
		}
		if (byWall - age).Abs() <= maxJitter {
			age = byWall
		}
	}
	return m.now.Add(-max(age, 0))
}

// toWall returns what is stored for t. Times before 1970 and after 2262 become the nearest that
// fits: 0 is for no time at all.
func toWall(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Unix() < 0:
		return 1
	case t.Unix() >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return max(t.UnixNano(), 1)
}
