package kubelet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// errHalfDone says that a call was sent twice and only one of the two worked,
// or may have: it is not certain where that leaves the volume.
var errHalfDone = errors.New("one of two calls failed")

// treatment knows which parts of a planned treatment were done. Each is done
// once in the life of a volume, whatever becomes of the kubelet.
type treatment struct {
	cancelled atomic.Bool
	reordered atomic.Bool
	repeated  atomic.Bool
}

func take(once *atomic.Bool) bool { return once.CompareAndSwap(false, true) }

// send sends a call, which is given up after giveUp if that is not 0.
type send func(ctx context.Context, giveUp time.Duration) error

// treat sends a call as planned: given up at first or not, once or twice. What
// was given up is repeated when the operation is, after its wait. A call that is
// sent twice is repeated here until it succeeds, or until there is no need, which
// is when stop is closed.
func (t *treatment) treat(ctx context.Context, plan workload.Call, timing Timing, stop <-chan struct{}, do send) error {
	once := func() error { return do(ctx, 0) }
	if plan.CancelAfter > 0 && take(&t.cancelled) {
		if err := do(ctx, plan.CancelAfter); err != nil {
			return err
		}
	}
	if plan.Repeat == workload.TwiceTogether && take(&t.repeated) {
		return together(
			func() error { return persist(ctx, timing, stop, once) },
			func() error { return persist(ctx, timing, stop, once) },
		)
	}
	if err := once(); err != nil {
		return err
	}
	if plan.Repeat == workload.TwiceInTurn && take(&t.repeated) {
		if err := persist(ctx, timing, stop, once); err != nil {
			return fmt.Errorf("%w: %w", errHalfDone, err)
		}
	}
	return nil
}

// together does both at the same time. If they end in the same way, that is the
// answer.
func together(a, b func() error) error {
	var group sync.WaitGroup
	var errA error
	group.Go(func() { errA = a() })
	errB := b()
	group.Wait()
	switch {
	case errA == nil && errB == nil:
		return nil
	case errA != nil && errB != nil && final(errA) && final(errB):
		return errA
	default:
		return fmt.Errorf("%w: %w", errHalfDone, errors.Join(errA, errB))
	}
}

// final reports whether the error of a call says for good that it did not work.
func final(err error) bool {
	return !errors.Is(err, errHalfDone) && history.Final(status.Code(err))
}

// persist repeats a call until it succeeds, with the waits of an operation.
func persist(ctx context.Context, timing Timing, stop <-chan struct{}, do func() error) error {
	for wait := time.Duration(0); ; {
		err := do()
		if err == nil {
			return nil
		}
		wait = timing.after(wait)
		if !sleep(ctx, stop, wait) {
			return err
		}
	}
}

// reorder sends a call and a late repetition of another, which comes overtaken
// after it, or before it if that is below 0. It returns when both are answered.
func reorder(ctx context.Context, overtaken time.Duration, call, late func()) {
	first, second := call, late
	if overtaken < 0 {
		first, second, overtaken = late, call, -overtaken
	}
	var group sync.WaitGroup
	group.Go(first)
	if sleep(ctx, nil, overtaken) {
		second()
	}
	group.Wait()
}

// sleep waits, and reports whether it came to the end of it.
func sleep(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	over, end := context.WithTimeout(ctx, d)
	defer end()
	select {
	case <-over.Done():
		return ctx.Err() == nil
	case <-stop:
		return false
	}
}
