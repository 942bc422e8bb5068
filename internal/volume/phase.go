package volume

import "fmt"

// Phase is the state of a volume. Its number is part of the record format.
type Phase uint8

// The phases of a volume's life, in their usual order.
const (
	// Publishing: the intent to mount is durable, the mount may or may not exist.
	Publishing Phase = iota + 1
	// Published: mounted at its targets, or about to be again by the kubelet
	// (after a reboot the pod keeps its data). Data in this phase is untouchable.
	Published
	// Unpublishing: an unmount was ordered, and the kernel has not confirmed it.
	Unpublishing
	// Retained: not mounted, data kept until its lifespan is over.
	Retained
	// Deleting: its time is over, data is being erased.
	Deleting
)

var phaseNames = map[Phase]string{
	Publishing:   "Publishing",
	Published:    "Published",
	Unpublishing: "Unpublishing",
	Retained:     "Retained",
	Deleting:     "Deleting",
}

// String returns the phase's name.
func (p Phase) String() string {
	if name, ok := phaseNames[p]; ok {
		return name
	}
	return fmt.Sprintf("Phase(%d)", uint8(p))
}

// Valid tells whether p is one of the phases above.
func (p Phase) Valid() bool { return phaseNames[p] != "" }

// Live tells whether the volume belongs to a pod that may be using it, so that
// its data must not be touched.
func (p Phase) Live() bool { return p == Publishing || p == Published || p == Unpublishing }

// changes is the whole life of a volume: the phases that may follow each
// phase. The zero phase stands for a volume that is not known.
var changes = map[Phase][]Phase{
	// A volume becomes known by a publish, or is adopted: by its mount as
	// published, by its data directory alone as retained.
	0: {Publishing, Published, Retained},
	// A publish that failed is undone: the volume is unknown again, retained
	// again, or has a mount left that must go.
	Publishing: {Published, Unpublishing, Retained, 0},
	// A published volume may be published at a second target, and a pod that
	// vanished without an unpublish leaves a volume to retain.
	Published: {Publishing, Unpublishing, Retained},
	// A kubelet that changes its mind publishes again.
	Unpublishing: {Publishing, Retained},
	// A volume ID published again within its lifespan gets its data back.
	Retained: {Publishing, Deleting},
	Deleting: {0},
}

// CanBecome tells whether a volume in phase p may change to phase next. The
// zero phase stands for a volume that is not known.
func (p Phase) CanBecome(next Phase) bool {
	for _, allowed := range changes[p] {
		if allowed == next {
			return true
		}
	}
	return false
}
