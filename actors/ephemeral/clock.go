package ephemeral

import (
	"sync"
	"time"
)

// maxStep is by how much the two clocks of a time may differ from those of another before that
// counts as a step of the wall clock. It is that of the index.
const maxStep = time.Second

// clock tells the time. The monotonic clock and the wall clock cannot be read at once, so they are
// some nanoseconds apart, now more and now less. The times of this clock are the same distance
// apart until the wall clock is stepped. The index keeps one reading of a time and works out the
// other: so it comes to the same time to the nanosecond as the record on disk, and a list goes on
// where it was after a restart.
//
// People read the wall clock. What is told to them is told: a time from before a step as if the wall
// clock had been right all along.
//
// The zero clock is ready to use.
type clock struct {
	mu   sync.Mutex
	base time.Time
}

// follow makes the clock go with a time, if that has both readings and is the first one.
func (c *clock) follow(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base.IsZero() && hasBoth(t) {
		c.base = t
	}
}

// hasBoth reports whether a time has a reading of the monotonic clock too, which Round drops.
func hasBoth(t time.Time) bool { return t != t.Round(0) }

// now returns the time.
func (c *clock) now() time.Time { return c.at(time.Now()) }

// at returns a time, which has both readings, as this clock tells it.
func (c *clock) at(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.base.Add(now.Sub(c.base))
	if c.base.IsZero() || t.Round(0).Sub(now.Round(0)).Abs() > maxStep {
		c.base = now
		return now
	}
	return t
}

// told returns a time as people are to see it: by the wall clock as it is now. A time without a reading of the
// monotonic clock stays.
func (c *clock) told(t time.Time) time.Time { return c.toldAt(t, time.Now()) }

func (c *clock) toldAt(t, now time.Time) time.Time {
	c.at(now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.IsZero() || !hasBoth(t) {
		return t
	}
	return c.base.Add(t.Sub(c.base))
}
