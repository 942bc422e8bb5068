package env

import (
	"context"
	"time"
)

const (
	// atOnce is how many comparisons run at once: each holds all of an array's volumes, and at the start
	// all are due.
	atOnce = 4
	// mostWait is how long a comparison waits for others at most: one with an array that hangs holds up
	// nothing.
	mostWait = 20 * time.Second
)

// Turns lets a few comparisons run at once.
type Turns chan struct{}

func newTurns() Turns { return make(Turns, atOnce) }

// Take waits for a turn, which ends with the returned function. It does not wait for ever: then there is
// one more.
func (t Turns) Take(ctx context.Context) (end func()) {
	ctx, cancel := context.WithTimeout(ctx, mostWait)
	defer cancel()
	select {
	case t <- struct{}{}:
		return func() { <-t }
	case <-ctx.Done():
		return func() {}
	}
}
