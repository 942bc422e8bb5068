package pools

import (
	"github.com/katbox/katbox/messages"
)

// MayAttach asks whether a PoolAttachment that was never attached may be: a person may have made it, and no
// call was admitted for it. Task -> supervisor.
type MayAttach struct {
	Attachment string
	messages.Reply[struct{}]
}

// MayDelete asks whether a resource that a person has deleted may be cleaned up: the rules are those
// for calls. Task -> supervisor.
type MayDelete struct {
	Kind, Name string
	messages.Reply[struct{}]
}

// The disks of many arrays do not say by the array's ID which volume they are. Which disk is a volume's is then decided
// here, once: a node writes the WWID of the disk that it has found into its attachment, and uses the disk when that is
// accepted. Two nodes may find different disks at the same time. The PoolVolume has the one that was accepted, and
// all later ones are compared with it.

// ClaimDisk asks which volume of a pool has a disk; it is the volume's own from then on if it is no other's. Task -> supervisor.
type ClaimDisk struct {
	Pool, WWID, Volume string
	messages.Reply[string]
}

// FindRequested asks for the volume that has another name than the one by which CSI asked for it: it was given
// back to a claim. The answer is empty where there is none. Task -> supervisor.
type FindRequested struct {
	Request string
	messages.Reply[string]
}
