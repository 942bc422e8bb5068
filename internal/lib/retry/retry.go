// Package retry says how long to wait before something is tried again, and waits.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is a series of waits: First, doubled with each failure, up to Longest.
type Backoff struct {
	First, Longest time.Duration
	// Jitter is by which part of it, from 0 to 1, a wait is shorter at most, at random: what failed together does
	// not come back together.
	Jitter float64
}

// After returns the wait after a number of failures in a row.
func (b Backoff) After(failures int) time.Duration { return b.jittered(failures, rand.Float64()) }

// jittered is After with the chance, between 0 and 1, as an argument.
func (b Backoff) jittered(failures int, chance float64) time.Duration {
	wait := b.First
	for i := 1; i < failures && wait < b.Longest; i++ {
		wait *= 2
	}
	wait = min(wait, b.Longest)
	return wait - time.Duration(chance*b.Jitter*float64(wait))
}

// Around returns a random duration that differs from d by at most a fifth.
func Around(d time.Duration) time.Duration { return d - d/5 + Below(d*2/5) }

// Below returns a random duration between 0 and d.
func Below(d time.Duration) time.Duration { return rand.N(max(d, 1)) }

// Pause waits for d, or until ctx ends; its error is that of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	over, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-over.Done()
	return ctx.Err()
}
