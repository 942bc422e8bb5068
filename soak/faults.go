package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// mostTries is when a volume is given up. With kills a daemon may be away for
// some seconds, but not for more than a minute.
const mostTries = 20

// backoff is the kubelet's wait after the n-th failure of an operation, from 0
// on: twice as long each time. A kubelet goes on to two minutes; here ten times
// the first wait is the limit, for the sake of the run's length.
func backoff(first time.Duration, n int) time.Duration {
	wait, longest := first, 10*first
	for range n {
		if wait >= longest {
			break
		}
		wait *= 2
	}
	return min(wait, longest)
}

// operation is one try to publish or unpublish a volume.
type operation func(context.Context, *volume, spoil) error

// carryOut does an operation as planned: cancelled at first or not, once or
// twice, and each until it succeeds.
func (k *kubelet) carryOut(ctx context.Context, v *volume, c callPlan, do operation) error {
	if c.cancel {
		// Whatever comes of it, the repetition below has to make it good. It
		// does not wait: the daemon may well still be at work on this one.
		_ = do(ctx, v, spoil{cancel: true, after: c.cancelAfter})
	}
	if c.repeat != once {
		k.stats.update(func(s *stats) { s.doubled++ })
	}
	switch c.repeat {
	case twiceTogether:
		return both(
			func() error { return k.persist(ctx, v, do) },
			func() error { return k.persist(ctx, v, do) },
		)
	case twiceInTurn:
		if err := k.persist(ctx, v, do); err != nil {
			return err
		}
	}
	return k.persist(ctx, v, do)
}

// persist repeats an operation until it succeeds, as the kubelet does after any
// error.
func (k *kubelet) persist(ctx context.Context, v *volume, do operation) error {
	for n := 0; ; n++ {
		err := do(ctx, v, spoil{})
		if err == nil {
			return nil
		}
		if ctx.Err() == nil && n+1 == mostTries {
			err = fmt.Errorf("given up after %d tries: %w", mostTries, err)
			k.findings.add(neverSucceeded, v, err.Error())
			return err
		}
		if over := sleep(ctx, backoff(k.firstWait, n)); over != nil {
			if n > 0 && errors.Is(over, errTimeLimit) {
				k.findings.add(neverSucceeded, v, fmt.Sprintf("failed %d times until the run was over: %v", n+1, err))
			}
			return over
		}
	}
}

// both runs two functions at the same time and returns the error of either.
func both(a, b func() error) error {
	var group sync.WaitGroup
	var errA error
	group.Go(func() { errA = a() })
	errB := b()
	group.Wait()
	if errA != nil {
		return errA
	}
	return errB
}

// sleep waits, unless the run ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// carryOutKills kills the daemon as planned. Each number that comes in is how
// many pods are over by now. It ends when all kills are done or one failed.
func carryOutKills(ctx context.Context, kills []killPlan, podsOver <-chan int, s *stats, kill func(context.Context) error) error {
	over := 0
	for i, planned := range kills {
		for over < planned.pods {
			select {
			case over = <-podsOver:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err := sleep(ctx, planned.delay); err != nil {
			return err
		}
		if err := kill(ctx); err != nil {
			return fmt.Errorf("kill %d of %d: %w", i+1, len(kills), err)
		}
		s.update(func(s *stats) { s.kills++ })
	}
	return nil
}
