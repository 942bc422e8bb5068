package lifespan

import (
	"math"
	"time"
)

// maxStep is how far the wall clock of a time may be off when it is told from
// another one, by the monotonic clock.
const maxStep = time.Second

// clock keeps times in eight bytes. By the monotonic clock, if they carry a reading,
// they come back as they were, and by the wall clock almost: where that has been
// stepped it is told from a base that was noted afterwards. They may be up to some
// 290 years apart, but for the zero time.
type clock struct {
	began bool
	// origin is what all times are counted from.
	origin time.Time
	// base is the present base.
	base time.Time
}

// never is what is kept of the zero time.
const never = math.MinInt64

// note returns what to keep of a time.
func (c *clock) note(t time.Time) (since int64, base time.Time) {
	if t.IsZero() {
		return never, t
	}
	if !c.began {
		*c = clock{began: true, origin: t, base: t}
	}
	step := t.Round(0).Sub(c.base.Round(0)) - t.Sub(c.base)
	if step < -maxStep || step > maxStep {
		c.base = t
	}
	return int64(t.Sub(c.origin)), c.base
}

// time returns a time that was noted.
func (c *clock) time(since int64, base time.Time) time.Time {
	if since == never {
		return base
	}
	return base.Add(time.Duration(since) - base.Sub(c.origin))
}
