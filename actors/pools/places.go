package pools

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// places are the pools on arrays, with the name of the Pool that has each. A second Pool of the same would count
// the same room again, and import the same volumes.
type places map[poolmessages.Place]string

// takePlace decides in the supervisor's turn.
func (o *owner) takePlace(m *poolmessages.TakePlace) string {
	if has := o.places[m.At]; has != "" && has != m.Pool {
		return has
	}
	if o.pools[m.Pool] != nil {
		o.places.leave(m.Pool)
		o.places[m.At] = m.Pool
	}
	return m.Pool
}

// leave gives up the place of a Pool.
func (p places) leave(pool string) {
	maps.DeleteFunc(p, func(_ poolmessages.Place, has string) bool { return has == pool })
}

// remember takes over what an earlier run has found. Of two Pools of one place the older one has it.
func (p places) remember(all map[string]*v1alpha1.Pool) {
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

// alone tells whether no other Pool has the pool on the array that a probe has found.
func (f *probe) alone(ctx context.Context, e *env.Environment) (verdict, error) {
	at := poolmessages.Place{IQN: f.health.IQN, PoolID: f.on.ID}
	has, err := actors.Ask(ctx, e.Root, e.Supervisor(), &poolmessages.TakePlace{Pool: f.object.Name, At: at})
	if err != nil || has == f.object.Name {
		return f.compatible, err
	}
	if f.object.Spec.Local != nil {
		return bad("SamePool", fmt.Sprintf("the disk with the UUID %s is that of Pool %s already; delete this Pool", at.PoolID, has)), nil
	}
	return bad("SamePool", fmt.Sprintf("%s of the array %s is that of Pool %s already; delete this Pool", at.PoolID, at.IQN, has)), nil
}
