package actors

import (
	"errors"
	"testing"
	"time"
)

func TestBackoffDoublesUpToTheLongest(t *testing.T) {
	b := Backoff{First: time.Second, Longest: 10 * time.Second}
	for attempt, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 8 * time.Second, 5: 10 * time.Second,
		1 << 40: 10 * time.Second,
	} {
		if got := b.jittered(attempt, 0); got != want {
			t.Errorf("attempt %d: %v, want %v", attempt, got, want)
		}
		if got := b.jittered(attempt, 1); got != want-want/10 {
			t.Errorf("attempt %d with the most jitter: %v, want %v", attempt, got, want-want/10)
		}
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}
