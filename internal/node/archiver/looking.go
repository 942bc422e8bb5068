package archiver

import (
	"context"
	"sync"
	"time"
)

const (
	// lookRest is how much longer than a look took the next one waits: each goes through all that waits, in turns of the
	// owner of all volumes. longestRest bounds that.
	lookRest    = 20
	longestRest = 5 * time.Second
)

// looking lets looks follow each other the less often the longer they take.
type looking struct {
	mu   sync.Mutex
	next time.Time
}

// begin waits until there may be a look, at the latest until hurry ends. done says that the look is over.
func (l *looking) begin(ctx, hurry context.Context) (done func(), err error) {
	l.mu.Lock()
	rest := time.Until(l.next)
	l.mu.Unlock()
	if rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-hurry.Done():
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	began := time.Now()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		now := time.Now()
		l.next = now.Add(min(lookRest*now.Sub(began), longestRest))
	}, nil
}
