package pace

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// FullBatch is the number of removals after which an erasure waits for [LongestYield].
const FullBatch = 256

// Turns limits how many erasures run at once. Each holds a slot for one batch, then lets another
// go. While CSI calls run it waits before the next batch; the fuller the disk, the shorter the
// wait. At factor 0 it does not wait, and its I/O has the priority of all others.
type Turns struct {
	slots chan struct{}
	calls *Calls
	// lowPriority lowers the I/O priority of the calling goroutine until end is called.
	lowPriority func() (end func())
	// onRemoved is called with the number of files and directories that were removed.
	onRemoved func(int)
	// factor is the pressure factor, as the bits of a float64.
	factor atomic.Uint64
	// removed counts the files and directories that all erasures removed.
	removed atomic.Int64
}

// NewTurns returns the turns of erasures of which slots may run at once.
func NewTurns(slots int, calls *Calls, lowPriority func() (end func()), onRemoved func(int)) *Turns {
	t := &Turns{slots: make(chan struct{}, slots), calls: calls, lowPriority: lowPriority, onRemoved: onRemoved}
	t.SetPressure(1)
	return t
}

// SetPressure sets the pressure factor.
func (t *Turns) SetPressure(factor float64) { t.factor.Store(math.Float64bits(factor)) }

// Hurry reports whether the pressure factor is 0: what is erased is needed.
func (t *Turns) Hurry() bool { return t.pressure() <= 0 }

func (t *Turns) pressure() float64 { return math.Float64frombits(t.factor.Load()) }

// Removed counts the files and directories that all erasures removed.
func (t *Turns) Removed() int64 { return t.removed.Load() }

// wait is how long an erasure that has removed this number of files waits at most.
func (t *Turns) wait(removed int) time.Duration {
	share := min(float64(removed)/FullBatch, 1)
	return time.Duration(share * t.pressure() * float64(LongestYield))
}

// Turn is the part of one erasure in it.
type Turn struct {
	*Turns
	// removed counts what this erasure removed.
	removed int
	// over ends the low I/O priority; nil when the erasure has no slot.
	over func()
}

// Take returns a turn without a slot.
func (t *Turns) Take() *Turn { return &Turn{Turns: t} }

// Removed counts the files and directories that this erasure removed.
func (t *Turn) Removed() int { return t.removed }

// Next gives the slot up and waits for another one; it is a scratch.Pace. The wait for calls is
// part of the turn: meanwhile no other erasure takes its place.
func (t *Turn) Next(ctx context.Context, removed int) error {
	t.removed += removed
	t.Turns.removed.Add(int64(removed))
	t.onRemoved(removed)
	err := t.calls.Yield(ctx, t.wait(removed))
	t.End()
	if err != nil {
		return err
	}
	select {
	case t.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	t.over = func() {}
	if !t.Hurry() {
		t.over = t.lowPriority()
	}
	return nil
}

// End gives the slot up, if the erasure has one.
func (t *Turn) End() {
	if t.over == nil {
		return
	}
	t.over()
	t.over = nil
	<-t.slots
}
