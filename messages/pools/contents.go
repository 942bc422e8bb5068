package pools

import (
	"github.com/katbox/katbox/messages"
)

// CountPool asks how many resources a pool has. Pool -> supervisor.
type CountPool struct {
	Name string
	messages.Reply[PoolCounts]
}

// ListPool asks which resources a pool has. Pool -> supervisor.
type ListPool struct {
	Name string
	messages.Reply[Contents]
}

// Contents are the resources on a pool.
type Contents struct {
	Volumes, Snapshots, Attachments []Content
}

// Content is one of them. ID is the array's; for an attachment that of the server record, and Volume
// names its PoolVolume.
type Content struct {
	Name, ID, Volume string
	Size             int64
	Flags            Flags
	// Export and Group are hashes of what the resource repeats of the array.
	Export, Group uint32
	// Of an attachment: Reached is where the node reaches the volume, Target and LUN what it finds there, and Node how
	// it appears on the server record.
	Reached, Target string
	LUN             int
	Node            NodeAddress
	NodeName        string
}

// NodeAddress is how a node appears to arrays.
type NodeAddress struct{ Address, IQN string }

// PoolCounts counts the resources on a pool.
type PoolCounts struct {
	Managed, External, Attachments int
	// RetainedVolumes are among the managed; Retained is their size in bytes.
	RetainedVolumes int
	Retained        int64
	// ManagedSnapshots are among the Snapshots.
	Snapshots, ManagedSnapshots int
}

// Flags are what the index knows of a resource. They are one number: there may be hundreds of thousands of resources.
type Flags uint16

// The flags of volumes, snapshots and attachments.
const (
	// FlagBlock: it is a block device. FlagISCSI: nodes reach it over iSCSI. FlagExternal: it was not made by Katbox.
	FlagBlock Flags = 1 << iota
	FlagISCSI
	FlagExternal
	// FlagDeleting: the resource is to be deleted.
	FlagDeleting
	// FlagUnfinished: the resource says something that has not been made true.
	FlagUnfinished
	// FlagShared: it may be attached to several nodes. FlagReady and FlagFailed: its state.
	FlagShared
	FlagReady
	FlagFailed
	// FlagLocal: it is on a node. FlagRetained: its claim is gone, and it is kept for a lifespan.
	FlagLocal
	FlagRetained
)

// Has reports whether all of these are set.
func (f Flags) Has(all Flags) bool { return f&all == all }

// FlagIf returns a flag if it is set, else none.
func FlagIf(set bool, f Flags) Flags {
	if set {
		return f
	}
	return 0
}

// Place is a pool on an array, however the array is reached.
type Place struct{ IQN, PoolID string }

// TakePlace asks for a pool on an array. It is answered with the Pool that has it: the asking one, or the one
// that came first. Task -> supervisor.
type TakePlace struct {
	Pool string
	At   Place
	messages.Reply[string]
}
