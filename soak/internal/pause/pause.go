// Package pause waits for a time, unless a context ends before.
package pause

import (
	"context"
	"time"
)

// For waits; its error is why ctx ended before.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
