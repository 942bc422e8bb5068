package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/pause"
)

// The times of work and of quiet, at most.
const (
	longestWork  = 3 * time.Second
	longestQuiet = 2 * time.Second
)

// quiet holds the pods up now and then. Each sync of theirs takes along what the
// daemons forgot to sync; in a time of quiet that stays where it is, while volumes
// expire.
type quiet struct {
	mu sync.Mutex
	// over is closed at the end of the quiet, nil while there is none.
	over chan struct{}
}

// come has it come and go until ctx ends.
func (q *quiet) come(ctx context.Context, random *rand.Rand) {
	for pause.For(ctx, time.Duration(random.Int64N(int64(longestWork)))) == nil {
		over := make(chan struct{})
		q.set(over)
		err := pause.For(ctx, time.Duration(random.Int64N(int64(longestQuiet))))
		q.set(nil)
		close(over)
		if err != nil {
			return
		}
	}
}

func (q *quiet) set(over chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = over
}

// wait returns when it is not quiet. The error says that ctx ended.
func (q *quiet) wait(ctx context.Context) error {
	q.mu.Lock()
	over := q.over
	q.mu.Unlock()
	if over == nil {
		return nil
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
