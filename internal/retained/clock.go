package retained

import (
	"math"
	"time"
)

// clock keeps a time in 8 bytes: the nanoseconds since the first time that it kept, by the
// monotonic clock if the times carry a reading: a step of the wall clock moves no deadline.
//
// People and the records on disk need a reading of the wall clock too. It is derived from a base,
// another time that was kept since the last step, and is off by maxStep at most.
type clock struct {
	origin time.Time // the first time that was kept
	base   time.Time // the first time that was kept since the last step
}

const (
	// maxStep is by how much the two clocks may differ before that counts as a step.
	maxStep = time.Second
	// never stands for the zero time.
	never = math.MinInt64
)

// keep returns what to keep of t. Times may be some 290 years apart.
func (c *clock) keep(t time.Time) (since int64, base time.Time) {
	if t.IsZero() {
		return never, t
	}
	if c.origin.IsZero() {
		*c = clock{origin: t, base: t}
	}
	if step := t.Round(0).Sub(c.base.Round(0)) - t.Sub(c.base); step.Abs() > maxStep {
		c.base = t
	}
	return int64(t.Sub(c.origin)), c.base
}

// time returns a time that was kept.
func (c *clock) time(since int64, base time.Time) time.Time {
	if since == never {
		return time.Time{}
	}
	return base.Add(time.Duration(since) - base.Sub(c.origin))
}

// since returns t as what keep would return, and keeps nothing.
func (c *clock) since(t time.Time) int64 {
	if c.origin.IsZero() {
		return 0
	}
	return int64(t.Sub(c.origin))
}
