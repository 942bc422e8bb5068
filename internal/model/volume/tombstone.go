package volume

import "time"

// Tombstone is what is remembered of a deleted volume: whose it was, when it went, and why.
type Tombstone struct {
	// Number orders the tombstones of a node: a later one has a higher number. The store gives it.
	Number uint64
	// Record is the volume's last one, without targets.
	Record Record
	// Size is what the volume took; zero if that was not known.
	Size Size
	// Gone is when the volume was deleted, on the wall clock in whole seconds.
	Gone time.Time
	// Kept is how long it was kept after its unpublish. What it was promised is Record.Keep.
	Kept time.Duration
	// Reason is why it went.
	Reason Reason
	// Factor is the pressure factor then, Free the free space, for volumes that went early.
	Factor float64
	Free   Size
	// By is who ended its lifespan, Why the reason that was given; empty if no person did.
	By, Why string
}

// Broken reports whether the volume went before the end of what it was promised, though no person
// wanted that.
func (t Tombstone) Broken() bool { return t.Reason.Early() }

// GoneSelection says which tombstones a list contains. A zero field selects all. Namespace, Tenancy,
// PodName, PodPrefix, Pod, Job and OwnerKind mean what they mean in a [Selection].
type GoneSelection struct {
	Selection
	// ID selects the tombstones of one volume.
	ID ID
	// Below continues a list: only tombstones with smaller numbers.
	Below uint64
}

// GonePage is a part of a list of tombstones, the newest first.
type GonePage struct {
	Tombstones []Tombstone
	// Next continues the list when it is the Below of the next GoneSelection. It is zero at the end of
	// the list. A page may hold fewer tombstones than its limit, or none, and not be the last.
	Next uint64
}
