package history

import "time"

// Removal is what became of a person's request to remove the volume: when it was
// first sent, and when it was first answered with success; zero if it was not.
type Removal struct{ Sent, Done time.Time }

// BeginRemoval notes that a request to remove the volume is about to be sent: from
// now on its data may go.
func (v *Volume) BeginRemoval() {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if v.removal.Sent.IsZero() {
		v.removal.Sent = now
	}
	v.remember(event{at: now, what: "a person asks to remove it"})
}

// EndRemoval notes the answer to a request to remove the volume.
func (v *Volume) EndRemoval(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if err != nil {
		v.remember(event{at: now, what: "it is not removed: " + err.Error()})
		return
	}
	if v.removal.Done.IsZero() {
		v.removal.Done = now
	}
	v.remember(event{at: now, what: "it is removed"})
}

// Removal is described at its type.
func (v *Volume) Removal() Removal {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.removal
}
