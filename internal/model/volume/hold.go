package volume

import (
	"fmt"
	"time"
)

// HoldKind is what a person has decided about how long a retained volume is kept. Its number is part
// of the record format.
type HoldKind uint8

const (
	// NoHold: there is no decision, or it was taken back.
	NoHold HoldKind = iota
	// Pinned: the volume is kept at least until the end of the hold. Pressure alone does not make it
	// go, unless the disk is all but full and nothing else is left.
	Pinned
	// Released: the volume goes at the end of the hold, or with its lifespan if that is sooner, and
	// before others under pressure.
	Released
)

// String returns the kind in one word.
func (k HoldKind) String() string {
	if k <= Released {
		return [...]string{"None", "Pinned", "Released"}[k]
	}
	return fmt.Sprintf("HoldKind(%d)", uint8(k))
}

// Hold is a person's decision about a retained volume. It ends when the volume is published again.
type Hold struct {
	Kind HoldKind
	// For is how long after the volume's unpublish the hold ends. So a step of the wall clock moves it
	// no more than it moves the lifespan.
	For time.Duration
	// By is who decided, Why the reason that was given: at most 253 and 1,024 bytes, printable.
	By, Why string
}

const (
	// MaxHoldBy is the longest By of a Hold, in bytes.
	MaxHoldBy = maxObjectName
	// MaxHoldWhy is the longest Why of a Hold, in bytes.
	MaxHoldWhy = 1024
)

// Check returns nil for a Hold that a record may have. The error is an [InvalidError].
func (h Hold) Check() error {
	switch {
	case h.Kind > Released:
		return Invalid("hold.kind", fmt.Sprintf("is %d, which means nothing", uint8(h.Kind)))
	case h.Kind == NoHold && h != Hold{}:
		return Invalid("hold", "is None, but says more")
	case h.For < 0:
		return Invalid("hold.for", "is negative")
	case len(h.By) > MaxHoldBy:
		return Invalid("hold.by", fmt.Sprintf("is longer than %d bytes", MaxHoldBy))
	case len(h.Why) > MaxHoldWhy:
		return Invalid("hold.why", fmt.Sprintf("is longer than %d bytes", MaxHoldWhy))
	case !isPrintable(h.By):
		return Invalid("hold.by", "has characters that cannot be printed")
	case !isPrintable(h.Why):
		return Invalid("hold.why", "has characters that cannot be printed")
	}
	return nil
}

// HeldUntil is when the hold of a retained volume ends; zero without a hold.
func (r Record) HeldUntil() time.Time {
	if r.Hold.Kind == NoHold {
		return time.Time{}
	}
	return r.Unpublished.Add(r.Hold.For)
}

// Until is when a retained volume goes without pressure: at the end of its lifespan, or as its hold
// says.
func (r Record) Until() time.Time { return r.Unpublished.Add(r.Keep()) }

// Keep is how long a retained volume is kept after its unpublish, without pressure.
func (r Record) Keep() time.Duration {
	switch r.Hold.Kind {
	case Pinned:
		return max(r.Lifespan, r.Hold.For)
	case Released:
		return min(r.Lifespan, r.Hold.For)
	}
	return r.Lifespan
}
