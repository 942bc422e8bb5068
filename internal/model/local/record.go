package local

import (
	"cmp"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// State is how far a volume or a snapshot is, as its record says.
type State string

// The states.
const (
	// Making: its data is being made. What an unfinished attempt has left is made anew.
	Making State = "making"
	Ready  State = "ready"
	// Deleting: it is on its way to the trash, whatever happens.
	Deleting State = "deleting"
)

// Record is what is durably known of a volume or a snapshot. At rest it is all that is known.
type Record struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Of is the volume that this is a snapshot of; empty for a volume.
	Of string `json:"of,omitempty"`
	// Size is the bytes that are promised to it. GrowsFrom is the size that it had before a growth that is not over;
	// 0 for none. Block and FSType are how pods see it.
	Size      int64     `json:"size"`
	GrowsFrom int64     `json:"growsFrom,omitempty"`
	Block     bool      `json:"block,omitempty"`
	FSType    string    `json:"fsType,omitempty"`
	Comment   string    `json:"comment,omitempty"`
	Source    Source    `json:"source,omitzero"`
	Created   time.Time `json:"created"`
}

// Has returns the size that its data has for certain.
func (r Record) Has() int64 { return cmp.Or(r.GrowsFrom, r.Size) }

// IsSnapshot reports whether the record is a snapshot's.
func (r Record) IsSnapshot() bool { return r.Of != "" }

// ErrUnwritable is a [volume.ErrUnavailable]: nothing can be written to the disk of a pool, or not what a volume is made of.
// What is on it can be read.
var ErrUnwritable error = unwritable{}

type unwritable struct{}

func (unwritable) Error() string { return "nothing can be written to its disk" }

func (unwritable) Is(target error) bool { return target == volume.ErrUnavailable }
