package pools

import (
	"time"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/messages"
)

// PoolReport tells the classes how a pool is, after each look at its array. Pool -> classes.
type PoolReport struct {
	Name, Class string
	State       v1alpha1.PoolState
	// Refuses says why it takes no new volumes; empty when it takes some.
	Refuses    string
	On         array.Pool
	Mode       array.Mode
	Overcommit float64
	// Headroom is bytes that are promised to no volume.
	Headroom int64
	// Kind tells a pool on an array from one on a disk of a node, which has a UUID.
	Kind       pools.Kind
	UUID       string
	Disk       array.Disk
	Thresholds Thresholds
	// Full: it takes none because of its mode alone.
	Full   bool
	Counts PoolCounts
	// Needs has what the pool lacks for some volumes.
	Needs Abilities
	// Measured is when the array was asked for these numbers: what was made before is in them.
	Measured time.Time
}

// Thresholds are free shares of a pool, from 0 to 1, between which lifespans shorten.
type Thresholds struct{ Alert, Emergency float64 }

// PoolMember tells the classes that there is a pool. Supervisor -> classes.
type PoolMember struct {
	Pool, Class string
	Kind        pools.Kind
	// UUID is that of a pool on a node.
	UUID string
}

// PoolGone tells the classes that there is no such pool any more. Supervisor -> classes.
type PoolGone struct{ Name string }

// WarnPool is a warning of a Pool. Classes -> supervisor.
type WarnPool struct{ Pool, Reason, Text string }

// PoolSeen tells a pool's actor what its Pool is. Supervisor -> pool.
type PoolSeen struct {
	messages.Routing
	Object *v1alpha1.Pool
	// Counts are the resources that it has.
	Counts PoolCounts
}

// PoolEnds tells a pool's actor that there is no Pool any more. Supervisor -> pool.
type PoolEnds struct{ messages.Routing }

// PoolCountsChanged tells the actor of a pool that is being deleted that it has one resource less.
// Supervisor -> pool.
type PoolCountsChanged struct {
	messages.Routing
	Counts PoolCounts
}

// Decline is why an array has refused a volume, and when it did so last.
type Decline struct {
	Why string
	At  time.Time
}

// Abilities are what a pool lacks for some volumes.
type Abilities struct {
	NoISCSI  bool
	Declines map[pools.Needs]Decline
}
