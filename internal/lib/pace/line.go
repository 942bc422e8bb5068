package pace

import "context"

// Line is where readers give way to calls: one after another, so that many of them together delay
// calls no more than one does.
type Line struct {
	calls *Calls
	// front is taken by the reader that waits for calls; the others wait behind it.
	front chan struct{}
}

// NewLine returns a line without readers.
func NewLine(calls *Calls) *Line { return &Line{calls: calls, front: make(chan struct{}, 1)} }

// Wait returns at once while no call runs. While calls run, it lets one reader after another pass,
// each after [quiet] at the latest: a hundred batches a second, whatever the number of readers is.
// Its error is that of ctx.
func (l *Line) Wait(ctx context.Context) error {
	if !l.calls.busy() {
		return ctx.Err()
	}
	select {
	case l.front <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.front }()
	return l.calls.Yield(ctx, quiet)
}
