package pause

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestUntil: something is tried until it is over or the context ends, and its last error is what is returned.
func TestUntil(t *testing.T) {
	busy, broken, cause := errors.New("busy"), errors.New("broken"), errors.New("enough")
	for _, tt := range []struct {
		name  string
		tries []error
		// waits says that the last of them is not the end.
		waits bool
		want  error
		after time.Duration
	}{
		{"at once", []error{nil}, false, nil, 0},
		{"after errors", []error{busy, busy, nil}, false, nil, 2 * time.Second},
		{"an error that is the end", []error{busy, broken}, false, broken, time.Second},
		{"the context ends during errors", []error{nil, busy}, true, busy, 10 * time.Second},
		{"the context ends, without an error", []error{busy, nil}, true, cause, 10 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, cause)
				defer cancel()
				began, tried := time.Now(), 0
				err := Until(ctx, time.Second, func() (bool, error) {
					n := min(tried, len(tt.tries)-1)
					tried++
					return n == len(tt.tries)-1 && !tt.waits, tt.tries[n]
				})
				if !errors.Is(err, tt.want) || time.Since(began) != tt.after {
					t.Errorf("%v after %s; want %v after %s", err, time.Since(began), tt.want, tt.after)
				}
			})
		})
	}
}
