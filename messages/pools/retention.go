package pools

import (
	"time"

	"github.com/katbox/katbox/messages"
)

// VolumeRetained tells the classes of a retained volume. Supervisor -> classes.
type VolumeRetained struct {
	Name, Pool string
	Size       int64
	Since      time.Time
	Lifespan   time.Duration
}

// VolumeNotRetained tells the classes that a volume is not retained any more. Supervisor -> classes.
type VolumeNotRetained struct{ Name string }

// Past is what the index keeps of a retained volume, or of one that was given to another claim.
type Past struct {
	// Claim and the UIDs identify its owner; those of a volume that was given are its former owner's.
	Namespace, NamespaceUID string
	Claim, ClaimUID         string
	Since, Until            time.Time
	// Given: it was bound to another claim, whose name is To.
	Given bool
	To    string
}

// ListRetained asks for the volumes of a namespace that are retained, or were given to another claim since.
// Task -> supervisor.
type ListRetained struct {
	Namespace string
	messages.Reply[[]RetainedVolume]
}

// RetainedVolume is one of them.
type RetainedVolume struct {
	Past
	Name, Pool, Class string
	Size              int64
	Version           uint64
}

// ListClaimed asks for volumes that were made for a claim, by the claim's UID, and are Ready: those whose name comes
// after one. Sweep -> supervisor.
type ListClaimed struct {
	After string
	messages.Reply[ClaimedPage]
}

// ClaimedPage is a page of them. ByClaim are their names; Last is the name to go on after; empty at the end.
type ClaimedPage struct {
	ByClaim map[string]string
	Last    string
}
