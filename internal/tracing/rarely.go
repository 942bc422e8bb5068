package tracing

import (
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/duration"
)

// interval is the least time between two lines of the log about the collector.
const interval = 10 * time.Minute

// rarely logs that traces cannot be sent. That may go on for days, and each batch
// of spans fails.
type rarely struct {
	log logr.Logger

	mu     sync.Mutex
	logged time.Time
	// since counts the failures that were not logged.
	since int
}

// Handle takes an error of the SDK.
func (r *rarely) Handle(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if !r.logged.IsZero() && now.Sub(r.logged) < interval {
		r.since++
		return
	}
	r.log.Error(err, "cannot send traces; nothing else waits for that", "failuresSinceTheLastLine", r.since, "notAgainFor",
		duration.Format(interval))
	r.logged, r.since = now, 0
}
