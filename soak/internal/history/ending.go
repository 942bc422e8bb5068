package history

import "time"

// EndTold notes that the kubelet tells the driver how the volume's pod has ended.
func (v *Volume) EndTold(phase string) {
	v.Note("the kubelet says that its pod has %s", phase)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.endTold.IsZero() {
		v.endTold = time.Now()
	}
}

// ToldAt is when the driver was told first how the volume's pod has ended; zero if it was not.
func (v *Volume) ToldAt() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.endTold
}

// PublishedSince reports whether the driver may have been at work on a publish at a time or later. With a publish it forgets how the
// pod has ended, and it is not told again.
func (v *Volume) PublishedSince(at time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.running {
		if c.Method == Publish {
			return true
		}
	}
	return v.publishing.After(at)
}
