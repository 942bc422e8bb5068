package messages

import (
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// MeasureSizes asks how much space some retained volumes take, to be measured in this order. One
// such question is open at a time. Supervisor -> sizes; answered by SizesMeasured.
type MeasureSizes struct {
	Volumes []volume.Record
	// Backlog: they were retained before the daemon was started, and no one waits for their sizes.
	Backlog bool
}

// SizesMeasured answers MeasureSizes, in one message or in several. A volume that is missing from
// the answer has not been measured: others may have to come first by now. Sizes -> supervisor.
type SizesMeasured struct {
	Sizes []VolumeSize
	// Done: this was all, and the next question may come.
	Done bool
}

// VolumeSize is how much space a volume takes. The volume may have been published again or be gone.
type VolumeSize struct {
	ID volume.ID
	// Unpublished is the question's.
	Unpublished time.Time
	// Size is zero for a volume that cannot be measured.
	Size volume.Size
}
