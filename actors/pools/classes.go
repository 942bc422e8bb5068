package pools

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// classSeen tells the classes what a PoolClass is. Supervisor -> classes.
type classSeen struct{ object *v1alpha1.PoolClass }

// classGone tells the classes that there is no such PoolClass any more. Supervisor -> classes.
type classGone struct{ name string }

type (
	// classSaved announces that a worker has ended.
	classSaved struct{ name string }
	// classAgain: it is time to write a class again.
	classAgain struct{ name string }
)

// countReserved asks how many volumes are being made on a pool. Pool -> classes.
type countReserved struct {
	pool string
	messages.Reply[int]
}

// classes knows all classes and how their pools are. It chooses the pool for each new volume and keeps
// room there, in one place, so that two volumes never take the same room; and it writes the classes'
// status.
type classes struct {
	*environment
	classes map[string]*class
	pools   map[string]*poolIs
	// reservations are those of volumes, by name.
	reservations map[string]*reservation
	// retention has all retained volumes, expiry the timer for the next one that goes. evictions are the
	// reservations, by volume, that wait until retained volumes have left their room.
	retention *retention
	expiry    *time.Timer
	evictions map[string]*eviction
	// listed: all pools are known, so that a class without members can go.
	listed bool
}

// class is one PoolClass.
type class struct {
	object *v1alpha1.PoolClass
	// saving delivers what a worker has written; nil when none runs.
	saving chan savedClass
	// told is what the last Events said.
	told    v1alpha1.ClassState
	blocked string
}

// reservation is room that is kept for a volume which is being made.
type reservation struct {
	pool  string
	bytes int64
	// made is when the volume had been made. The array counts it from then on, and the next look at it
	// ends the reservation. Zero while it is being made.
	made time.Time
}

func classesProps(env *environment) *actor.Props {
	k := &classes{
		environment: env, classes: map[string]*class{}, pools: map[string]*poolIs{}, reservations: map[string]*reservation{},
		retention: newRetention(), evictions: map[string]*eviction{},
	}
	return actor.PropsFromFunc(k.Receive, actor.WithReceiverMiddleware(actors.Recovering(env.Log)), actors.AtOnce)
}

func (k *classes) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *poolmessages.ReservePool:
		k.answer(c, m, 0)
	case *countReserved:
		n := 0
		for _, r := range k.reservations {
			if r.pool == m.pool && r.made.IsZero() {
				n++
			}
		}
		m.Send(n, nil)
	case *wantsOfClass:
		m.Send(k.wants(m.class), nil)
	case *poolmessages.ReleasePool:
		k.release(m)
	case *poolmessages.ClassCapacity:
		m.Send(k.capacity(m))
	case *classSeen:
		k.see(m.object)
		k.update(c, m.object.Name)
	case *classGone:
		delete(k.classes, m.name)
	case *poolMember:
		before := k.pools[m.pool]
		if before == nil {
			k.pools[m.pool] = &poolIs{name: m.pool, class: m.class, kind: m.kind, uuid: m.uuid}
		} else if before.class != m.class {
			moved := *before
			moved.class = m.class
			k.pools[m.pool] = &moved
			k.update(c, before.class)
		}
		k.update(c, m.class)
	case *poolIs:
		k.learn(c, m)
		k.update(c, m.class)
		k.expire(c)
	case *retainedIs:
		k.retention.set(m, time.Now())
		k.expire(c)
	case *retainedNot:
		k.retention.remove(m.name)
	case *retainedEnded:
		k.ended(c, m)
	case *retentionDue:
		k.expire(c)
	case *lifespanOfClass:
		m.Send(k.lifespanOf(m.class), nil)
	case *nameOfClass:
		m.Send(k.nameOf(m.class))
	case *actor.Stopping:
		actors.StopTimer(k.expiry)
	case *poolGone:
		k.retention.forget(m.name)
		if p := k.pools[m.name]; p != nil {
			delete(k.pools, m.name)
			k.update(c, p.class)
		}
	case *listed:
		k.listed = true
		for name := range k.classes {
			k.update(c, name)
		}
		k.expire(c)
	case *classSaved:
		k.saved(c, m.name)
	case *classAgain:
		k.update(c, m.name)
	default:
		actors.IgnoreLifecycle(k.Log, c)
	}
}

// see takes over a PoolClass, unless it is older than what was written.
func (k *classes) see(object *v1alpha1.PoolClass) {
	known := k.classes[object.Name]
	switch {
	case known == nil:
		k.classes[object.Name] = &class{object: object, told: object.Status.State}
	case known.object.UID != object.UID || !older(versionOf(object), versionOf(known.object)):
		known.object = object
	}
}

// learn takes over how a pool is. A pool that was deleted since stays so.
func (k *classes) learn(c actor.Context, m *poolIs) {
	if k.pools[m.name] == nil {
		return
	}
	k.pools[m.name] = m
	taken := int64(0)
	for name, r := range k.reservations {
		if r.pool == m.name && !r.made.IsZero() && m.measured.After(r.made) {
			taken += r.bytes
			delete(k.reservations, name)
		}
	}
	if k.retention.learn(m, taken) {
		k.tellFutile(c, m.name)
	}
}

// find returns a class by its name; the default one for an empty name.
func (k *classes) find(name string) (*class, error) {
	if name != "" {
		if c := k.classes[name]; c != nil {
			return c, nil
		}
		return nil, fmt.Errorf("%w: there is no PoolClass %s", volume.ErrNotFound, name)
	}
	var all []string
	for name, c := range k.classes {
		if c.object.Spec.Default {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	switch len(all) {
	case 1:
		return k.classes[all[0]], nil
	case 0:
		return nil, fmt.Errorf("%w: no class is named, and no PoolClass is the default one", volume.ErrNotFound)
	}
	return nil, fmt.Errorf("%w: no class is named, and the PoolClasses %s are all the default one",
		volume.ErrNotFound, strings.Join(all, ", "))
}

// members returns the pools of a class, by name.
func (k *classes) members(class string) (all []*poolIs) {
	for _, name := range slices.Sorted(maps.Keys(k.pools)) {
		if p := k.pools[name]; p.class == class {
			all = append(all, p)
		}
	}
	return all
}

// candidate is a pool for the allocator, without what is reserved for one volume that is being made or grows.
func (k *classes) candidate(p *poolIs, but string) pools.Candidate {
	bytes, making := int64(0), 0
	for name, r := range k.reservations {
		if r.pool == p.name && (name != but || !r.made.IsZero()) {
			bytes += r.bytes
			making++
		}
	}
	return candidateOf(p, bytes, making)
}

// capacity returns what a class has room for. On a node volumes whose claims are gone give way to new ones.
func (k *classes) capacity(m *poolmessages.ClassCapacity) (all pools.Capacity, err error) {
	c, err := k.find(m.Class)
	if err != nil {
		return all, err
	}
	asked := &poolmessages.ReservePool{Kind: m.Kind, Near: m.Near, Block: m.Block}
	groups, err := k.groups(c.object, asked)
	if err != nil {
		return all, err
	}
	for _, group := range groups {
		for _, p := range group {
			one := k.candidateFor(c.object, p, asked, true)
			if p.kind == pools.KindLocal {
				one.Provisioned -= p.counts.retained
				one.Available = min(one.Available+p.counts.retained, one.Total)
			}
			room := one.Room()
			all.Available += room
			all.Largest = max(all.Largest, room)
		}
	}
	return all, nil
}
