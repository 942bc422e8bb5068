package messages

import (
	"context"

	"github.com/katbox/katbox/internal/volume"
)

// ListRetained asks for a page of the retained volumes. Front -> supervisor.
type ListRetained struct {
	volume.Selection
	Reply[volume.Page]
}

// DescribeVolume asks what is known of a volume, in whatever phase it is. Front -> supervisor, which
// answers for a volume that sleeps, -> volume. It wakes none.
type DescribeVolume struct {
	ID volume.ID
	Reply[volume.Description]
}

// ListAwake asks which volumes have an actor: all that are published, and those that are changing.
// Front -> supervisor.
type ListAwake struct{ Reply[[]volume.ID] }

// BeginReading asks to read the files of a retained volume. Front -> supervisor.
type BeginReading struct {
	ID volume.ID
	Reply[*Lease]
}

// EndReading gives a lease back. Front -> supervisor.
type EndReading struct{ Lease *Lease }

// Lease permits to read a volume's files while it is retained. Each reader has one of its own.
type Lease struct {
	volume.Description
	// Lost ends when the volume is published again or goes; its cause says which. The reader closes
	// the volume's files then. No publish and no deletion waits for that.
	Lost context.Context
}

// RemoveVolume orders a retained volume to be deleted now. It is answered once that is recorded and
// the data is out of its place. Front -> supervisor -> volume.
type RemoveVolume struct {
	Routing
	Reply[struct{}]
}

func (*DescribeVolume) toVolume() {}
