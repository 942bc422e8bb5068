package lifespan

import (
	"math"
	"testing"
	"time"
)

func TestRoundUp(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		math.MinInt64: 0, 0: 0, 1: time.Minute, time.Minute: time.Minute, time.Minute + 1: 2 * time.Minute,
		99 * time.Minute: 99 * time.Minute, 99*time.Minute + 1: 100 * time.Minute, 101 * time.Minute: 110 * time.Minute,
		12 * time.Hour: 12 * time.Hour, 1000 * time.Minute: 1000 * time.Minute, 1001 * time.Minute: 1100 * time.Minute,
		9901 * time.Minute: 10000 * time.Minute, math.MaxInt64: math.MaxInt64,
	} {
		if got := RoundUp(d); got != want {
			t.Errorf("%v becomes %v, want %v", d, got, want)
		}
	}
}

// TestRoundUpLeavesFew: however many lifespans are asked for, few are kept, and none is shorter or
// much longer.
func TestRoundUpLeavesFew(t *testing.T) {
	few := map[time.Duration]bool{}
	for i := range 100_000 {
		d := time.Duration(i+1) * 6037 * time.Millisecond // up to a week
		got := RoundUp(d)
		if got < d || got > d+max(d/10, time.Minute) || RoundUp(got) != got {
			t.Fatalf("%v becomes %v", d, got)
		}
		few[got] = true
	}
	if len(few) > 300 {
		t.Errorf("%d different lifespans", len(few))
	}
}
