package volume

import (
	"fmt"
	"time"
)

// Terms are what a pod's volume was promised when it was first published: what the pod asked for,
// within what the administrator allows. The zero Terms are those of a volume that was found, or that
// an earlier version recorded: they promise the daemon's defaults.
type Terms struct {
	// Lifespan is how long the volume is kept after its unpublish, without pressure.
	Lifespan time.Duration
	// LifespanSucceeded takes its place once the pod is known to have Succeeded. It is at most as long.
	LifespanSucceeded time.Duration
	// Retain says after which outcomes the volume is kept for a lifespan.
	Retain Retain
	// Limit is how much the volume may take; zero bytes or inodes set no limit.
	Limit Size
	// Mode are the permissions of the volume's top directory, and its sticky bit, as chmod(2) takes
	// them. Zero is the default.
	Mode uint32
	// NoLogs: what the containers of the pod print is not kept.
	NoLogs bool
	// Archive says after which outcomes a copy of the volume goes to the archive.
	Archive Archive
}

// Check returns nil for Terms that a record may have. The error is an [InvalidError].
func (t Terms) Check() error {
	switch {
	case t.Lifespan < 0 || t.LifespanSucceeded < 0:
		return Invalid("terms.lifespan", "is negative")
	case t.LifespanSucceeded > t.Lifespan:
		return Invalid("terms.lifespanSucceeded", "is longer than the lifespan")
	case t.Retain > RetainNever:
		return Invalid("terms.retain", fmt.Sprintf("is %d, which means nothing", uint8(t.Retain)))
	case t.Archive > ArchiveAlways:
		return Invalid("terms.archive", fmt.Sprintf("is %d, which means nothing", uint8(t.Archive)))
	case t.Limit.Bytes < 0 || t.Limit.Inodes < 0:
		return Invalid("terms.limit", "is negative")
	case t.Mode&^0o1777 != 0:
		return Invalid("terms.mode", fmt.Sprintf("is %#o, which has more than permissions and the sticky bit", t.Mode))
	}
	return nil
}

// Kept returns how long a volume is kept after its unpublish, without pressure: by its terms and the
// outcome. grace is the least that an outcome or Retain leaves of a lifespan. Only Succeeded ever
// shortens a lifespan, except where the pod asked for RetainNever.
func (t Terms) Kept(o Outcome, grace time.Duration) time.Duration {
	succeeded := o == Succeeded
	switch {
	case t.Retain == RetainNever, t.Retain == RetainOnFailure && succeeded:
		return min(t.Lifespan, grace)
	case succeeded:
		return max(t.LifespanSucceeded, min(t.Lifespan, grace))
	}
	return t.Lifespan
}

// Retain says after which outcomes a volume is kept for a lifespan. Its number is part of the record
// format.
type Retain uint8

const (
	// RetainAlways keeps it whatever the outcome is.
	RetainAlways Retain = iota
	// RetainOnFailure keeps it unless the pod Succeeded.
	RetainOnFailure
	// RetainNever keeps it for a last grace only.
	RetainNever
)

// String returns the word that a pod's attribute has for it.
func (r Retain) String() string {
	if r <= RetainNever {
		return [...]string{"Always", "OnFailure", "Never"}[r]
	}
	return fmt.Sprintf("Retain(%d)", uint8(r))
}
