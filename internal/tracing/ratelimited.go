package tracing

import (
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/duration"
)

// quietTime is the least time between two log lines about the collector.
const quietTime = 10 * time.Minute

// rateLimited logs that traces cannot be sent. That may go on for days, and each batch of
// spans fails.
type rateLimited struct {
	log logr.Logger

	mu     sync.Mutex
	logged time.Time
	// since counts the failures since then.
	since int
}

// Handle receives the errors of the SDK.
func (r *rateLimited) Handle(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if !r.logged.IsZero() && now.Sub(r.logged) < quietTime {
		r.since++
		return
	}
	r.log.Error(err, "cannot send traces; nothing else waits for that",
		"failuresSinceTheLastLine", r.since, "notAgainFor", duration.Format(quietTime))
	r.logged, r.since = now, 0
}
