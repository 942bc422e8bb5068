// Package pause waits for a time, unless a context ends before.
package pause

import (
	"context"
	"time"
)

// For waits; its error is why ctx ended before.
func For(ctx context.Context, d time.Duration) error {
	over, end := context.WithTimeout(ctx, d)
	defer end()
	<-over.Done()
	return context.Cause(ctx)
}
