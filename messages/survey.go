package messages

import (
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// Survey asks how much space a retained volume takes. There is one such question
// at a time. Retention -> surveyor; answered by Surveyed.
type Survey struct {
	Pod volume.PodUID
	ID  volume.ID
	// Unpublished is since when it has been retained.
	Unpublished time.Time
}

// Surveyed answers Survey, when the volume may have been published again or be
// gone. Surveyor -> retention.
type Surveyed struct {
	ID volume.ID
	// Unpublished is the question's.
	Unpublished time.Time
	// Bytes is 0 for a volume that cannot be measured.
	Bytes int64
}

func (*Survey) toSurveyor()    {}
func (*Surveyed) toRetention() {}
