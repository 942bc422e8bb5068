package workload

import "time"

// Pod is what one pod will do.
type Pod struct {
	Index     int // from 0 on
	UID       string
	Namespace string // one of a few
	Name      string
	// Arrival is when it comes, after the beginning of the run.
	Arrival time.Duration
	// Length is how long its containers run.
	Length time.Duration
	// DeletedEarly says that it is deleted so long after its arrival, whether
	// its volumes are mounted or not; 0 says that it is not.
	DeletedEarly time.Duration
	// Again is how long after its end it comes to the node once more; 0 says that
	// it does not.
	Again   time.Duration
	Volumes []Volume
	// Bad are the calls with bad input that are made while it lives.
	Bad []BadCall
	// Failed says that it fails.
	Failed bool
	// Owner is what made it; the zero Owner for most.
	Owner Owner
}

// Owner is what makes pods one after the other.
type Owner struct{ Kind, Name string }

// String is empty for the zero Owner.
func (o Owner) String() string {
	if o == (Owner{}) {
		return ""
	}
	return o.Kind + " " + o.Name
}

// Volume is what one volume of a pod will go through.
type Volume struct {
	// Name is the volume's in the pod. A persistent volume goes by its handle
	// instead: that is the name of its directory below the pod's.
	Name string
	// ID is the kubelet's volume ID for an inline volume, and the volume handle
	// of a persistent one, which several pods may have.
	ID         string
	Persistent bool
	// Block says, of a persistent volume, that its pods get a device; Shared that pods on several nodes
	// may write to it. No plan of a run has such.
	Block, Shared bool
	ReadOnly      bool
	Content       Content
	Publish       Call
	Unpublish     Call
	// OnFailure says that it is to be kept only if its pod fails.
	OnFailure bool
	// Attributes are what the pod says of it beyond that. Lifespan is how long it is kept
	// by them; 0 stands for as long as those that say nothing.
	Attributes map[string]string
	Lifespan   time.Duration
	// Tight says that its limits are [TightBytes] and [TightInodes], and that its pod writes until it
	// is refused.
	Tight bool
	// RemovedAfter is how long after its unpublish a person removes the volume; 0
	// says that it is not. No volume with a Trouble is removed.
	RemovedAfter time.Duration
	// PinnedAfter is how long after its unpublish a person pins the volume, for
	// PinnedFor from then on, and ReleasedAfter when one releases it. At most one of
	// these befalls a volume.
	PinnedAfter, PinnedFor, ReleasedAfter time.Duration
	// AttachedAfter is how long after its unpublish another pod attaches the volume, for
	// AttachedFor from then on. That befalls none of the others.
	AttachedAfter, AttachedFor time.Duration
	// Trouble is the fault that befalls this volume; nil for most. No pod has
	// more than one such volume, it is an inline one, and the pod is not deleted
	// early.
	Trouble *PlannedFault
}

// Content is what a volume will have in it.
type Content struct {
	// Marker is in the marker file. No other volume has the same.
	Marker string
	// Seed decides the names and bytes.
	Seed  uint64
	Files int
	Bytes int64 // the size of the largest file
	// What else there is; see [Contents].
	Deep, Names, Sparse, Links, Modes, Special bool
}

// Call is how the kubelet's call is treated on its way.
type Call struct {
	Repeat Repeat
	// CancelAfter is when the first try is given up; 0 if it is not.
	CancelAfter time.Duration
	// Reordered says, of an unpublish, that a late repetition of the publish is
	// sent too: Overtaken after it, or so long before it if that is below 0.
	Reordered bool
	Overtaken time.Duration
}

// Repeat says how often a call is sent.
type Repeat int

// The repetitions.
const (
	Once Repeat = iota
	TwiceTogether
	TwiceInTurn
)

// BadCall picks a call with bad input, by a random number: package misuse knows
// how many there are and what they look like.
type BadCall uint64

// PlannedFault is one fault at its place in the run.
type PlannedFault struct {
	Kind FaultKind
	// Number counts the faults of a kind, from 1 on.
	Number int
	For    time.Duration
	Step   time.Duration
	// A fault of the node begins Delay after so many pods are over. A fault of
	// a volume befalls the pod with the index Pods, and Delay is how far into
	// the pod's or the volume's life, as its kind wants it. It is a fifth of a
	// second at most.
	Pods  int
	Delay time.Duration
	// Choice is a random number for whatever there is to choose.
	Choice uint64
}
