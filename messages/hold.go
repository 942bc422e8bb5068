package messages

import (
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// HoldVolume pins or releases a retained volume, or takes either back. The answer comes once that is
// durable. Front -> supervisor -> volume.
type HoldVolume struct {
	Routing
	// Kind is what the volume gets; NoHold takes back what it has.
	Kind volume.HoldKind
	// Until is when a pin ends, on the wall clock.
	Until time.Time
	// By is who asks, Why the reason that was given.
	By, Why string
	Reply[struct{}]
}

// PurgeVolume orders a retained volume to be deleted now. The answer comes once that is recorded
// and the data is in the trash, or with the error of the first try. Front -> supervisor -> volume.
type PurgeVolume struct {
	Routing
	// By is who asks, Why the reason that was given, if one was.
	By, Why string
	Reply[struct{}]
}
