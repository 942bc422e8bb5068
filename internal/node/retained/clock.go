package retained

import (
	"math"
	"time"
)

// clock keeps a time in 8 bytes: the nanoseconds since the first time that it kept, by the
// monotonic clock if the times carry a reading: a step of the wall clock moves no deadline.
//
// People and the records on disk need a reading of the wall clock too. It is derived from a base,
// which follows the steps of the wall clock: a time that was kept before one reads as if the wall
// clock had been right all along. It is off by maxStep at most.
type clock struct {
	origin time.Time // the first time that was kept
	base   time.Time // the first time that was kept or followed since the last step
}

const (
	// maxStep is by how much the two clocks may differ before that counts as a step.
	maxStep = time.Second
	// never stands for the zero time.
	never = math.MinInt64
)

// keep returns what to keep of t. Times may be some 290 years apart.
func (c *clock) keep(t time.Time) (since int64) {
	if t.IsZero() {
		return never
	}
	if c.origin.IsZero() {
		*c = clock{origin: t, base: t}
	}
	return int64(t.Sub(c.origin))
}

// follow takes over what the wall clock shows now, and reports whether it was stepped.
func (c *clock) follow(now time.Time) (stepped bool) {
	if c.origin.IsZero() {
		return false
	}
	// Without monotonic readings both differences are the same.
	step := now.Round(0).Sub(c.base.Round(0)) - now.Sub(c.base)
	if step.Abs() > maxStep {
		c.base = now
		return true
	}
	return false
}

// time returns a time that was kept.
func (c *clock) time(since int64) time.Time {
	if since == never {
		return time.Time{}
	}
	return c.base.Add(time.Duration(since) - c.base.Sub(c.origin))
}

// since returns t as what keep would return, and keeps nothing.
func (c *clock) since(t time.Time) int64 {
	if c.origin.IsZero() {
		return 0
	}
	return int64(t.Sub(c.origin))
}
