package daemon

import (
	"context"
	"time"

	"github.com/katbox/katbox/soak/internal/host"
)

// Driver is the driver under test, over all its restarts. One goroutine at a
// time calls Start, Kill and Stop.
type Driver interface {
	// Start starts it and returns when it says that it is ready.
	Start(ctx context.Context) error
	// Kill ends it as a crash would, and returns when it is gone.
	Kill()
	// Stop tells it to end and waits. The error says that it did not end as it
	// should.
	Stop() error
	// Died says why it ended on its own. It is never closed.
	Died() <-chan error
	// SetClock sets by how much its wall clock differs from the machine's, now
	// and after each restart.
	SetClock(offset time.Duration)
	// Usage is what it uses now, with the CPU time of its earlier processes. It
	// is false while there is none.
	Usage() (host.Usage, bool)
	// Descriptors is how many files it has open now. It is false while there is no process.
	Descriptors() (int, bool)
	// Records is how many volumes it has on record, once it has ended.
	Records() (int, error)
	// Total is what it used, once it has ended: the sum of the CPU time, the
	// highest of the others.
	Total() host.Usage
}
