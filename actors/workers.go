package actors

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// MaxWorkers bounds the operations that run at the same time. Each may hold an operating system
	// thread inside a system call that hangs, and Go ends the process at 10,000 threads. It is far
	// above what a kubelet has in flight (some 400 were seen), so that operations do not wait for
	// one another.
	MaxWorkers = 2048
	// maxSpare bounds the goroutines that wait for another operation: as many as run on a busy node.
	maxSpare = 64
)

// workersWithin returns how many operations may run at the same time in a process that may have
// the given number of threads; 0 sets no limit. Go ends a process that gets no thread when it needs
// one. So half of the threads are left for everything else, and for the other containers of the pod.
func workersWithin(threads int) int {
	if threads == 0 {
		return MaxWorkers
	}
	return min(max(threads/2, 1), MaxWorkers)
}

// Workers runs operations in goroutines of their own.
type Workers struct {
	slots chan struct{}
	// beside are the slots of operations that others wait for; see [Workers.Beside].
	beside chan struct{}
	closed atomic.Bool
	// A goroutine that has ended an operation takes another one from next: the stack of a new
	// goroutine would have to grow several times again. spare counts those that wait for one.
	next  chan func()
	spare chan struct{}
	// ended is closed when nothing comes any more.
	ended chan struct{}
}

// NewWorkers returns workers that run at most limit operations at the same time.
func NewWorkers(limit int) *Workers {
	return &Workers{slots: make(chan struct{}, limit), beside: make(chan struct{}, limit), next: make(chan func()),
		spare: make(chan struct{}, maxSpare), ended: make(chan struct{})}
}

// Limit is how many operations may run at the same time.
func (w *Workers) Limit() int { return cap(w.slots) }

// Go runs f, or says at once why not.
func (w *Workers) Go(f func()) error {
	if err := w.take(w.slots); err != nil {
		return err
	}
	select {
	case w.next <- f:
	default:
		go w.work(f)
	}
	return nil
}

// Beside runs an operation that another one waits for, or says at once why not. There is always room for it,
// unless some of those others have given up waiting: with one slot for both, operations would wait for each
// other.
func (w *Workers) Beside(f func()) error {
	if err := w.take(w.beside); err != nil {
		return err
	}
	go func() {
		defer func() { <-w.beside }()
		f()
	}()
	return nil
}

// take takes a slot.
func (w *Workers) take(slots chan struct{}) error {
	if w.closed.Load() {
		return ErrStopping
	}
	select {
	case slots <- struct{}{}:
		return nil
	default:
		return fmt.Errorf("%w: %d operations are running, the file system may hang", volume.ErrUnavailable, cap(slots))
	}
}

// work runs f and then other operations, unless enough goroutines wait for those.
func (w *Workers) work(f func()) {
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

func (w *Workers) run(f func()) {
	defer func() { <-w.slots }()
	f()
}

// Close lets no further operation start and waits for the running ones. Its error says how many
// were still running when ctx ended.
func (w *Workers) Close(ctx context.Context) error {
	if !w.closed.Swap(true) {
		defer close(w.ended)
	}
	for _, slots := range []chan struct{}{w.slots, w.beside} {
		for taken := range cap(slots) {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return fmt.Errorf("%d operations still running: %w", cap(slots)-taken, ctx.Err())
			}
		}
	}
	return nil
}

// threadKept: a thread could not be given back, and others will not be either.
var threadKept atomic.Bool

// LowPriority gives the calling goroutine the lowest I/O priority that no disk, however busy,
// leaves unserved, until the function that it returns is called.
func LowPriority() (end func()) {
	// The priority is the thread's, which is the goroutine's for as long.
	runtime.LockOSThread()
	restore := kernel.LowestIOPriority()
	return func() { giveBack(restore()) }
}

// giveBack gives the thread back, unless it keeps its priority. It ends with the goroutine then,
// and no goroutine of workers carries out a second operation.
func giveBack(failed error) {
	if failed != nil {
		threadKept.Store(true)
		return
	}
	runtime.UnlockOSThread()
}
