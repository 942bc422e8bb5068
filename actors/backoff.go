package actors

import (
	"math/rand/v2"
	"time"
)

// Backoff is a series of waiting times: First, doubled each time, up to Longest.
type Backoff struct{ First, Longest time.Duration }

var (
	// StuckBackoff is short at first: a process that keeps a target busy usually ends within the
	// second, and the kubelet's own first retry comes after half a second.
	StuckBackoff = Backoff{50 * time.Millisecond, 15 * time.Second}
	// RestartBackoff is for actors that panicked.
	RestartBackoff = Backoff{100 * time.Millisecond, 5 * time.Second}
	// ParkedBackoff is for volumes whose actor has failed too often.
	ParkedBackoff = Backoff{time.Minute, 30 * time.Minute}
)

// After returns how long to wait after the given attempt, counted from 1, with a tenth of jitter so
// that volumes that failed together do not retry together.
func (b Backoff) After(attempt int) time.Duration { return b.jittered(attempt, rand.Float64()) }

// jittered is After with the chance, between 0 and 1, as an argument.
func (b Backoff) jittered(attempt int, chance float64) time.Duration {
	wait := b.First
	for i := 1; i < attempt && wait < b.Longest; i++ {
		wait *= 2
	}
	wait = min(wait, b.Longest)
	return wait - time.Duration(chance*float64(wait)/10)
}
