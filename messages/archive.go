package messages

import (
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// NextToArchive asks what waits to be archived. Front -> supervisor.
type NextToArchive struct {
	// Not are volumes that do not count, Later those that count, and are not next.
	Not, Later map[volume.ID]struct{}
	Reply[volume.Waiting]
}

// ArchivedVolume says that the archive has a copy of a retained volume until then, as it was read by the lease that was the
// answer to Begun. The answer comes once that is durable; it is an error if that lease was lost.
// Front -> supervisor -> volume.
type ArchivedVolume struct {
	Routing
	Begun *BeginReading
	Until time.Time
	Reply[struct{}]
}
