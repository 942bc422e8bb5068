package archiver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestLooksRest: a look that takes long is followed by a rest, which a stop ends, and one that takes no time by none.
func TestLooksRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l looking
		hurry, stop := context.WithCancel(t.Context())
		look := func(takes time.Duration) (waited time.Duration) {
			t.Helper()
			began := time.Now()
			done, err := l.begin(t.Context(), hurry)
			if err != nil {
				t.Fatal(err)
			}
			waited = time.Since(began)
			time.Sleep(takes)
			done()
			return waited
		}
		for _, tt := range []struct{ takes, waits time.Duration }{
			{0, 0}, {100 * time.Millisecond, 0}, {time.Minute, lookRest * 100 * time.Millisecond}, {0, longestRest}, {time.Second, 0},
		} {
			if waited := look(tt.takes); waited != tt.waits {
				t.Errorf("a look began after %s, want %s", waited, tt.waits)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.begin(ended, hurry); err == nil {
			t.Error("a look begins though its context has ended")
		}
		stop()
		if waited := look(0); waited != 0 {
			t.Errorf("a stop waits for %s", waited)
		}
	})
}
