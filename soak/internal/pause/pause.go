// Package pause waits for a time, or until something is done, unless a context ends before.
package pause

import (
	"cmp"
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

// Until tries something until it is over, and returns the last error of that: also where ctx ends before. Without one, it
// returns why ctx has ended.
func Until(ctx context.Context, every time.Duration, try func() (over bool, err error)) error {
	for {
		over, err := try()
		if over {
			return err
		}
		if ended := For(ctx, every); ended != nil {
			return cmp.Or(err, ended)
		}
	}
}
