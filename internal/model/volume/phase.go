package volume

import (
	"fmt"
	"slices"
)

// Phase is the state of a volume. Its number is part of the record format.
type Phase uint8

// The phases of a volume's life, in their usual order.
const (
	// Unknown: there is no such volume. No record has this phase.
	Unknown Phase = iota
	// Publishing: the intent to mount is durable, the mount may or may not exist.
	Publishing
	// Published: mounted at its targets. After a reboot it is not, until the kubelet publishes it
	// again; the pod keeps its data. Nothing may touch the data in this phase.
	Published
	// Unpublishing: an unmount was ordered, and the kernel has not confirmed it.
	Unpublishing
	// Retained: not mounted; the data is kept until its lifespan is over.
	Retained
	// Deleting: it goes, because its lifespan is over or room is needed.
	Deleting
)

var phaseNames = [...]string{"Unknown", "Publishing", "Published", "Unpublishing", "Retained", "Deleting"}

// String returns the phase's name.
func (p Phase) String() string {
	if p <= Deleting {
		return phaseNames[p]
	}
	return fmt.Sprintf("Phase(%d)", uint8(p))
}

// Valid reports whether a record may have the phase p.
func (p Phase) Valid() bool { return p != Unknown && p <= Deleting }

// PhaseOf returns the phase of r, which is nil for a volume that is not known.
func PhaseOf(r *Record) Phase {
	if r == nil {
		return Unknown
	}
	return r.Phase
}

// Live reports whether a pod may be using the volume. Its data must not be touched then.
func (p Phase) Live() bool { return p == Publishing || p == Published || p == Unpublishing }

// changes is the whole life of a volume: the phases that may follow each phase.
var changes = map[Phase][]Phase{
	// A volume that is found mounted is adopted as published, one that is not as retained.
	Unknown: {Publishing, Published, Retained},
	// A publish that failed is undone, but a mount may be left that must go.
	Publishing: {Published, Unpublishing, Retained, Unknown},
	// A second target is published. A pod that vanished without an unpublish leaves a volume to
	// retain.
	Published: {Publishing, Unpublishing, Retained},
	// A kubelet that changes its mind publishes again.
	Unpublishing: {Publishing, Retained},
	// A volume ID published again within its lifespan gets its data back.
	Retained: {Publishing, Deleting},
	Deleting: {Unknown},
}

// CanBecome reports whether a volume in phase p may change to phase next.
func (p Phase) CanBecome(next Phase) bool { return slices.Contains(changes[p], next) }
