package messages

import (
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// NextToArchive asks what waits to be archived, from a place in the list of that on, which is zero for its beginning. The answer looks
// at some volumes alone, so that no call waits for it; [WaitingPart.Next] says where to go on. Front -> supervisor.
type NextToArchive struct {
	// Not are volumes that do not count, Later those that count, and are not next.
	Not, Later *volume.IDs
	From       volume.Key
	Reply[WaitingPart]
}

// WaitingPart is what waits in a part of the list.
type WaitingPart struct {
	volume.Waiting
	// Next is where the next part begins; zero at the end.
	Next volume.Key
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
