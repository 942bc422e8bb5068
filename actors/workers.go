package actors

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/katbox/katbox/internal/volume"
)

// maxWorkers bounds the operations that run at the same time. Each may hold an
// operating system thread inside a system call that hangs, and Go ends the
// process at 10,000 threads. It is far above what a kubelet has in flight
// (some 400 were seen), so that operations do not wait for one another.
const maxWorkers = 2048

// workers runs operations in goroutines of their own.
type workers struct {
	slots  chan struct{}
	closed atomic.Bool
}

func newWorkers(limit int) *workers {
	return &workers{slots: make(chan struct{}, limit)}
}

// Go runs f, or says at once why not.
func (w *workers) Go(f func()) error {
	if w.closed.Load() {
		return fmt.Errorf("%w: the daemon is stopping", volume.ErrUnavailable)
	}
	select {
	case w.slots <- struct{}{}:
	default:
		return fmt.Errorf("%w: %d operations are running, the file system may hang", volume.ErrUnavailable, cap(w.slots))
	}
	go func() {
		defer func() { <-w.slots }()
		f()
	}()
	return nil
}

// Close lets no further operation start and waits for the running ones. Its
// error says how many were still running when ctx ended.
func (w *workers) Close(ctx context.Context) error {
	w.closed.Store(true)
	for taken := range cap(w.slots) {
		select {
		case w.slots <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("%d operations still running: %w", cap(w.slots)-taken, ctx.Err())
		}
	}
	return nil
}
