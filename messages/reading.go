package messages

import (
	"context"

	"github.com/katbox/katbox/internal/model/volume"
)

// ListRetained asks for a page of the retained volumes. Front -> supervisor.
type ListRetained struct {
	volume.Selection
	Reply[volume.Page]
}

// DescribeVolume asks what is known of a volume, in whatever phase it is. Front -> supervisor.
type DescribeVolume struct {
	Routing
	Reply[volume.Description]
}

// ListAwake asks which volumes have an actor and are in no list of retained ones: all that are published, and those that
// are changing.
// Front -> supervisor.
type ListAwake struct{ Reply[[]volume.ID] }

// BeginReading asks to read the files of a retained volume. The asker sends EndReading afterwards,
// whatever the answer is and even if it does not wait for one. Front -> supervisor.
type BeginReading struct {
	ID volume.ID
	// ToArchive: it is read for the archive, which has to have all of it.
	ToArchive bool
	Reply[*Lease]
}

// EndReading gives the lease back that was the answer to Begun, if that is still held.
// Front -> supervisor.
type EndReading struct{ Begun *BeginReading }

// Lease permits to read a volume's files while the volume is retained. Each reader has its own.
type Lease struct {
	volume.Description
	// Lost ends when the volume is published again or deleted; its cause says which. The reader
	// closes the volume's files then. No publish and no deletion waits for that.
	Lost context.Context
}
