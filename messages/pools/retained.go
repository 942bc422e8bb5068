package pools

import (
	"time"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/messages"
)

// EndRetained orders a retained volume to be deleted for good. One that is not retained any more stays.
// Classes -> supervisor -> volume.
type EndRetained struct {
	messages.Routing
	// Name is the volume's.
	Name string
	// Since is when its claim was deleted: the order is about that deletion.
	Since time.Time
	// Lifespan is how long the volume was to be kept when that was decided. One that is to be kept longer since stays.
	Lifespan time.Duration
	// Reason is one word, Why a sentence.
	Reason pools.End
	Why    string
	messages.Reply[struct{}]
}

// RestoreVolume orders a retained volume to be given to a claim, or what an earlier such order has begun to be
// finished. Task -> supervisor -> volume.
type RestoreVolume struct {
	messages.Routing
	// Name is the volume's.
	Name string
	// New is what the claim asks for, and For the claim.
	New pools.NewVolume
	For pools.ClaimOf
	messages.Reply[pools.Volume]
}
