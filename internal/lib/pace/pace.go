// Package pace lets background work give way to CSI calls: [Calls] knows whether calls run, [Turns]
// limits how many erasures work at once, and readers wait in a [Line].
package pace

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
)

const (
	// quiet is how long no call must have run for background work to go on.
	quiet = 10 * time.Millisecond
	// LongestYield bounds how long background work waits for calls before its next batch: space has
	// to come free under a load that never ends, too.
	LongestYield = 100 * time.Millisecond
)

// Calls knows whether calls are running.
type Calls struct {
	running atomic.Int64
	// last is when the last one ended, in nanoseconds since began.
	last  atomic.Int64
	began time.Time
}

// NewCalls returns one without calls.
func NewCalls() *Calls {
	c := &Calls{began: time.Now()}
	c.last.Store(int64(-quiet))
	return c
}

// Begin notes that a call runs until the function that it returns is called.
func (c *Calls) Begin() (end func()) {
	c.running.Add(1)
	return func() {
		c.last.Store(int64(time.Since(c.began)))
		c.running.Add(-1)
	}
}

// Yield waits until no call has been running for a moment, at most as long as given. Its error is
// that of ctx.
func (c *Calls) Yield(ctx context.Context, atMost time.Duration) error {
	for waited := time.Duration(0); waited < atMost && c.busy(); {
		wait := min(quiet, atMost-waited)
		if err := retry.Pause(ctx, wait); err != nil {
			return err
		}
		waited += wait
	}
	return ctx.Err()
}

func (c *Calls) busy() bool {
	return c.running.Load() > 0 || time.Since(c.began)-time.Duration(c.last.Load()) < quiet
}
