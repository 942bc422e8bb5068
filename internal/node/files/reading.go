package files

import (
	"context"

	"github.com/katbox/katbox/internal/model/volume"
)

// Pace is called before each batch of work: 256 KiB of bytes, 64 files that are looked at, or one
// read of a directory's names. It waits while CSI calls run. Its error ends the work, which returns
// it. A nil Pace means no pauses.
type Pace func(ctx context.Context) error

// Wait calls p, which may be nil, unless ctx has ended.
func (p Pace) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil || p == nil {
		return err
	}
	return p(ctx)
}

// Reading is the permission to read one retained volume, until Close is called or Lost ends.
type Reading struct {
	Volume volume.Description
	Tree   *Tree
	// Lost ends when the volume is published again, or goes; its cause says which. The reader then
	// calls Close within a few seconds: the deletion or the publish does not wait.
	Lost context.Context
	Pace Pace
	// Close ends the reading. It may be called several times.
	Close func()
}
