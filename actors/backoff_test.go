package actors

import (
	"context"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/volume"
)

func TestBackoffDoublesUpToTheLongest(t *testing.T) {
	b := backoff{first: time.Second, longest: 10 * time.Second}
	for attempt, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 8 * time.Second, 5: 10 * time.Second, 1 << 40: 10 * time.Second,
	} {
		if got := b.jittered(attempt, 0); got != want {
			t.Errorf("attempt %d: %v, want %v", attempt, got, want)
		}
		if got := b.jittered(attempt, 1); got != want-want/10 {
			t.Errorf("attempt %d with the most jitter: %v, want %v", attempt, got, want-want/10)
		}
	}
}

func TestWorkersRefuseWhatIsTooMuch(t *testing.T) {
	w := newWorkers(1)
	release := make(chan struct{})
	if err := w.Go(func() { <-release }); err != nil {
		t.Fatal(err)
	}
	wantError(t, w.Go(func() {}), volume.ErrUnavailable)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, w.Close(ended), context.Canceled)
	close(release)
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	wantError(t, w.Go(func() {}), volume.ErrUnavailable)
}

func withTimeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
