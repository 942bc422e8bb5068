package nodes

import (
	"cmp"
	"maps"
	"slices"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// Places are the pools on arrays, with the name of the Pool that has each. A second Pool of the same would count
// the same room again, and import the same volumes.
type Places map[poolmessages.Place]string

// Leave gives up the place of a Pool.
func (p Places) Leave(pool string) {
	maps.DeleteFunc(p, func(_ poolmessages.Place, has string) bool { return has == pool })
}

// Remember takes over what an earlier run has found. Of two Pools of one place the older one has it.
func (p Places) Remember(all map[string]*v1alpha1.Pool) {
	older := func(a, b *v1alpha1.Pool) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}
	for _, one := range slices.SortedFunc(maps.Values(all), older) {
		at := rules.PlaceOf(one)
		if at.IQN != "" && at.PoolID != "" && p[at] == "" {
			p[at] = one.Name
		}
	}
}
