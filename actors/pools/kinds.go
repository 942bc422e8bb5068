package pools

import (
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// defaultHeadroom is the share of a node's disk that is promised to no volume where the Pool does not say.
const defaultHeadroom = 0.1

// promiseOnce: a pool on a node promises what it has, without the headroom, and once at most.
func promiseOnce(f *poolmessages.PoolReport, on *v1alpha1.LocalPool, disk array.Disk) {
	f.UUID, f.Disk = on.UUID, disk
	f.Headroom = int64(rules.ParseShare(on.Headroom, defaultHeadroom) * float64(f.On.Total))
	if f.Overcommit == 0 || f.Overcommit > 1 {
		f.Overcommit = 1
	}
}
