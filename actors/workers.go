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

// workersWithin returns how many operations may run at the same time in a process
// that may have the given number of threads; 0 sets no limit. Go ends a process
// that gets no thread when it needs one. So half of the threads are left for
// everything else, and for the other containers of the pod.
func workersWithin(threads int) int {
	if threads == 0 {
		return maxWorkers
	}
	return min(max(threads/2, 1), maxWorkers)
}

// maxSpare bounds the goroutines that wait for another operation: as many as run
// on a busy node.
const maxSpare = 64

// workers runs operations in goroutines of their own.
type workers struct {
	slots  chan struct{}
	closed atomic.Bool
	// next is taken from by goroutines that have ended an operation, spare counts
	// them. The stack of a new one would have to grow several times again.
	next  chan func()
	spare chan struct{}
	// ended is closed when nothing comes any more.
	ended chan struct{}
}

func newWorkers(limit int) *workers {
	return &workers{slots: make(chan struct{}, limit), next: make(chan func()), spare: make(chan struct{}, maxSpare), ended: make(chan struct{})}
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
	select {
	case w.next <- f:
	default:
		go w.work(f)
	}
	return nil
}

// work runs f, and then what comes, unless enough others wait for that.
func (w *workers) work(f func()) {
	for {
		w.run(f)
		if threadKept.Load() {
			return // it may be this one's
		}
		select {
		case w.spare <- struct{}{}:
		default:
			return
		}
		select {
		case f = <-w.next:
			<-w.spare
		case <-w.ended:
			return
		}
	}
}

func (w *workers) run(f func()) {
	defer func() { <-w.slots }()
	f()
}

// Close lets no further operation start and waits for the running ones. Its
// error says how many were still running when ctx ended.
func (w *workers) Close(ctx context.Context) error {
	if !w.closed.Swap(true) {
		defer close(w.ended)
	}
	for taken := range cap(w.slots) {
		select {
		case w.slots <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("%d operations still running: %w", cap(w.slots)-taken, ctx.Err())
		}
	}
	return nil
}
