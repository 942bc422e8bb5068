package actors

import (
	"math/rand/v2"
	"time"
)

// backoff is a series of waiting times: the first, doubled each time, up to
// the longest.
type backoff struct{ first, longest time.Duration }

var (
	// unmountBackoff is short at first: a process that keeps a target busy
	// usually ends within the second, and the kubelet's own first retry comes
	// after half a second.
	unmountBackoff = backoff{50 * time.Millisecond, 15 * time.Second}
	// deleteBackoff is long: what hinders a deletion (a mount inside, a broken
	// file system) takes a person to clear.
	deleteBackoff = backoff{10 * time.Second, 10 * time.Minute}
	// restartBackoff is for actors that panicked.
	restartBackoff = backoff{100 * time.Millisecond, 5 * time.Second}
	// parkedBackoff is for volumes whose actor has given up.
	parkedBackoff = backoff{time.Minute, 30 * time.Minute}
)

// after returns how long to wait after the given attempt, counted from 1, with
// a tenth of jitter so that volumes that failed together do not retry together.
func (b backoff) after(attempt int) time.Duration {
	return b.jittered(attempt, rand.Float64())
}

// jittered is after with the chance, between 0 and 1, as an argument.
func (b backoff) jittered(attempt int, chance float64) time.Duration {
	wait := b.first
	for i := 1; i < attempt && wait < b.longest; i++ {
		wait *= 2
	}
	wait = min(wait, b.longest)
	return wait - time.Duration(chance*float64(wait)/10)
}
