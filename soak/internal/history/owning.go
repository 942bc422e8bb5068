package history

import "time"

// Owning is when the driver was told of the owner of the volume's pod: when that was sent first, and from when to when it was
// sent last and confirmed; zero if it was not.
type Owning struct{ Sent, From, To time.Time }

// BeginOwning notes that the driver is about to be told of the owner of the volume's pod. The returned function notes that the
// driver has confirmed it.
func (v *Volume) BeginOwning() (end func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	from := time.Now()
	if v.owning.Sent.IsZero() {
		v.owning.Sent = from
	}
	v.remember(event{at: from, what: "the driver is told that its pod is of " + v.Owner})
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.owning.From, v.owning.To = from, time.Now()
	}
}

// Owning is described at its type.
func (v *Volume) Owning() Owning {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.owning
}
