package kubelet

import "time"

// Timing is how long the kubelet waits for what. A zero field stands for what
// the real one does.
type Timing struct {
	// Period is how often the worlds are compared: 100 ms.
	Period time.Duration
	// FirstWait is the wait after the first error of an operation, 500 ms. Each
	// further one doubles it, up to LongestWait, which is 2 min 2 s.
	FirstWait   time.Duration
	LongestWait time.Duration
	// CallTimeout is the deadline of each call: 2 min.
	CallTimeout time.Duration
}

// orReal fills in what the real kubelet does (kubernetes
// pkg/util/goroutinemap/exponentialbackoff, pkg/volume/csi/csi_plugin.go).
func (t Timing) orReal() Timing {
	or := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	or(&t.Period, 100*time.Millisecond)
	or(&t.FirstWait, 500*time.Millisecond)
	or(&t.LongestWait, 2*time.Minute+2*time.Second)
	or(&t.CallTimeout, 2*time.Minute)
	return t
}

// after returns the wait that follows an error, given the wait before it, which
// is 0 if there was none.
func (t Timing) after(wait time.Duration) time.Duration {
	if wait == 0 {
		return t.FirstWait
	}
	return min(2*wait, t.LongestWait)
}
