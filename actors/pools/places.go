package pools

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/messages"
)

// place is a pool on an array, however the array is reached.
type place struct{ iqn, poolID string }

// places are the pools on arrays, with the name of the Pool that has each. A second Pool of the same would count
// the same room again, and import the same volumes.
type places map[place]string

// takePlace asks for a pool on an array. It is answered with the Pool that has it: the asking one, or the one
// that came first. Task -> supervisor.
type takePlace struct {
	pool string
	at   place
	messages.Reply[string]
}

// takePlace decides in the supervisor's turn.
func (o *owner) takePlace(m *takePlace) string {
	if has := o.places[m.at]; has != "" && has != m.pool {
		return has
	}
	if o.pools[m.pool] != nil {
		o.places.leave(m.pool)
		o.places[m.at] = m.pool
	}
	return m.pool
}

// leave gives up the place of a Pool.
func (p places) leave(pool string) {
	maps.DeleteFunc(p, func(_ place, has string) bool { return has == pool })
}

// remember takes over what an earlier run has found. Of two Pools of one place the older one has it.
func (p places) remember(all map[string]*v1alpha1.Pool) {
	older := func(a, b *v1alpha1.Pool) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}
	for _, one := range slices.SortedFunc(maps.Values(all), older) {
		at := placeOf(one)
		if at.iqn != "" && at.poolID != "" && p[at] == "" {
			p[at] = one.Name
		}
	}
}

// placeOf returns the place that an earlier run has found for a Pool; an empty one where it has found none.
func placeOf(p *v1alpha1.Pool) place {
	if p.Spec.Local != nil {
		return place{p.Status.Local.UUID, p.Status.Local.UUID}
	}
	return place{p.Status.VPSA.IQN, p.Status.VPSA.PoolID}
}

// alone tells whether no other Pool has the pool on the array that a probe has found.
func (f *probe) alone(ctx context.Context, e *environment) (verdict, error) {
	at := place{f.health.IQN, f.on.ID}
	has, err := actors.Ask(ctx, e.Root, e.Supervisor(), &takePlace{pool: f.object.Name, at: at})
	if err != nil || has == f.object.Name {
		return f.compatible, err
	}
	if f.object.Spec.Local != nil {
		return bad("SamePool", fmt.Sprintf("the disk with the UUID %s is that of Pool %s already; delete this Pool", at.poolID, has)), nil
	}
	return bad("SamePool", fmt.Sprintf("%s of the array %s is that of Pool %s already; delete this Pool", at.poolID, at.iqn, has)), nil
}
