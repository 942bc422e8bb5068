package history

import (
	"sync"
	"time"
)

// Violation is one broken promise and the story that goes with it.
type Violation struct {
	Promise Promise
	At      time.Time
	What    string
	// Volume and Pod are empty if it concerns no single volume.
	Volume string
	Pod    string
	// Story is the volume's whole story until then, a line for each event.
	Story []string
}

// mostKept is how many violations are kept in full. A driver that is wholly
// broken makes one for each call, which are too many to read.
const mostKept = 1000

// Findings collects violations. The zero value is ready, and it may be used by
// many goroutines.
type Findings struct {
	mu    sync.Mutex
	kept  []Violation
	count map[Promise]int
	total int
}

// Add notes a violation that concerns a volume, or none if v is nil.
func (f *Findings) Add(p Promise, v *Volume, what string) {
	found := Violation{Promise: p, At: time.Now(), What: what}
	if v != nil {
		found.Volume, found.Pod, found.Story = v.ID, v.Pod, v.Story()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil {
		f.count = make(map[Promise]int)
	}
	f.count[p]++
	f.total++
	if len(f.kept) < mostKept {
		f.kept = append(f.kept, found)
	}
}

// All returns the first thousand violations.
func (f *Findings) All() []Violation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Violation(nil), f.kept...)
}

// Number returns how often a promise was broken.
func (f *Findings) Number(p Promise) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[p]
}

// Sum returns how many violations there were.
func (f *Findings) Sum() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}
