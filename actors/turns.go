package actors

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/katbox/katbox/internal/metrics"
)

const (
	// quiet is how long no call must have run for erasures to go on.
	quiet = 10 * time.Millisecond
	// longestYield bounds how long erasures give way to calls before the next
	// batch: under a load that never ends, too, space has to come free.
	longestYield = 100 * time.Millisecond
	// fullBatch is the number of removals that is worth the longest one.
	fullBatch = 256
)

// turns has erasures take turns, at most so many at a time, each for one batch
// of files. They give way to calls, and the less the fuller the disk is: space
// is then what calls need most.
type turns struct {
	slots chan struct{}
	calls *calls
	// factor is the pressure factor, as the bits of a float64.
	factor atomic.Uint64
	// removed counts the files and directories that all of them removed.
	removed atomic.Int64
	metrics *metrics.Metrics
}

func newTurns(atOnce int, c *calls, m *metrics.Metrics) *turns {
	t := &turns{slots: make(chan struct{}, atOnce), calls: c, metrics: m}
	t.hurry(1)
	return t
}

// hurry sets the pressure factor.
func (t *turns) hurry(factor float64) { t.factor.Store(math.Float64bits(factor)) }

// due is how long an erasure that has removed so many files is to give way at
// most.
func (t *turns) due(removed int) time.Duration {
	share := min(float64(removed)/fullBatch, 1)
	return time.Duration(share * math.Float64frombits(t.factor.Load()) * float64(longestYield))
}

// turn is one erasure's part in it.
type turn struct {
	*turns
	// removed counts what this erasure removed.
	removed int
	// over ends the low I/O priority; nil when the erasure has no turn.
	over func()
}

func (t *turns) take() *turn { return &turn{turns: t} }

// next ends the turn and waits for the next one; it is a scratch.Pace. To give
// way is part of the turn: while one erasure does, no other takes its place.
func (t *turn) next(ctx context.Context, removed int) error {
	t.removed += removed
	t.turns.removed.Add(int64(removed))
	t.metrics.EntriesErased(removed)
	err := t.calls.yield(ctx, t.due(removed))
	t.end()
	if err != nil {
		return err
	}
	select {
	case t.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	t.over = lowPriority()
	return nil
}

// end gives the turn up, if the erasure has it.
func (t *turn) end() {
	if t.over == nil {
		return
	}
	t.over()
	t.over = nil
	<-t.slots
}

// calls knows whether calls are running.
type calls struct {
	running atomic.Int64
	// last is when the last one ended, in nanoseconds since began.
	last  atomic.Int64
	began time.Time
}

func newCalls() *calls {
	c := &calls{began: time.Now()}
	c.last.Store(int64(-quiet))
	return c
}

// begin notes that a call runs until the function it returns is called.
func (c *calls) begin() (end func()) {
	c.running.Add(1)
	return func() {
		c.last.Store(int64(time.Since(c.began)))
		c.running.Add(-1)
	}
}

// yield waits until no call has been running for a moment, at most as long as
// given. Its error is that of ctx.
func (c *calls) yield(ctx context.Context, atMost time.Duration) error {
	for waited := time.Duration(0); waited < atMost && c.busy(); {
		wait := min(quiet, atMost-waited)
		if err := pause(ctx, wait); err != nil {
			return err
		}
		waited += wait
	}
	return ctx.Err()
}

func (c *calls) busy() bool {
	return c.running.Load() > 0 || time.Since(c.began)-time.Duration(c.last.Load()) < quiet
}

// pause waits. Its error is that of ctx.
func pause(ctx context.Context, length time.Duration) error {
	over, end := context.WithTimeout(ctx, length)
	defer end()
	<-over.Done()
	return ctx.Err()
}
