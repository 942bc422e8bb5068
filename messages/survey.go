package messages

import (
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// Survey asks how much space some retained volumes take, which are to be measured
// in this order. There is one such question at a time. Retention -> surveyor;
// answered by Surveyed.
type Survey struct {
	Volumes []ToMeasure
	// Backlog: they were retained before the daemon was started, and it makes no
	// difference to anybody when they are measured.
	Backlog bool
}

// ToMeasure is the record of a volume to be measured.
type ToMeasure struct{ volume.Record }

// Surveyed answers Survey, in one piece or in several. Those that are missing from
// the answer have not been measured: there may be others by now that should come
// first. Surveyor -> retention.
type Surveyed struct {
	Sizes []Size
	// Done: this was all, and the surveyor is ready for the next question.
	Done bool
}

// Size is how much space a volume takes, when it may have been published again or
// be gone.
type Size struct {
	ID volume.ID
	// Unpublished is the question's.
	Unpublished time.Time
	// Takes is nothing for a volume that cannot be measured.
	Takes volume.Size
}

func (*Survey) toSurveyor()    {}
func (*Surveyed) toRetention() {}
