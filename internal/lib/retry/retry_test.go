package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoffDoublesUpToTheLongest(t *testing.T) {
	b := Backoff{First: time.Second, Longest: 10 * time.Second, Jitter: 0.1}
	for failures, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 8 * time.Second, 5: 10 * time.Second,
		1 << 40: 10 * time.Second,
	} {
		if got := b.jittered(failures, 0); got != want {
			t.Errorf("after %d failures: %v, want %v", failures, got, want)
		}
		if got := b.jittered(failures, 1); got != want-want/10 {
			t.Errorf("after %d failures with the most jitter: %v, want %v", failures, got, want-want/10)
		}
	}
}

func TestAround(t *testing.T) {
	for range 1000 {
		if got := Around(time.Second); got < 800*time.Millisecond || got > 1200*time.Millisecond {
			t.Fatalf("around a second: %v", got)
		}
	}
	if Around(0) != 0 || Below(0) != 0 {
		t.Errorf("around 0: %v, below 0: %v", Around(0), Below(0))
	}
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Pause(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if err := Pause(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("with a context that ends: %v after %v", err, time.Since(began))
		}
	})
}
