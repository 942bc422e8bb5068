package classes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

type (
	// classSaved says what came of writing a PoolClass. object is nil where there is none any more.
	classSaved struct {
		class  *class
		name   string
		object *v1alpha1.PoolClass
		err    error
	}
	// classAgain: it is time to write a class again.
	classAgain struct{ name string }
)

// classes knows all classes and how their pools are. It chooses the pool for each new volume and keeps
// room there, in one place, so that two volumes never take the same room; and it writes the classes'
// status.
type classes struct {
	*env.Environment
	classes map[string]*class
	pools   map[string]*poolmessages.PoolReport
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
	// saving: a worker writes it.
	saving bool
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

// Props describes the actor of the classes.
func Props(e *env.Environment) *actor.Props {
	k := &classes{
		Environment: e, classes: map[string]*class{}, pools: map[string]*poolmessages.PoolReport{}, reservations: map[string]*reservation{},
		retention: newRetention(), evictions: map[string]*eviction{},
	}
	return actor.PropsFromFunc(k.Receive, actor.WithReceiverMiddleware(actors.Recovering(e.Log)), actors.AtOnce)
}

func (k *classes) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *poolmessages.ReservePool:
		k.answer(c, m, 0)
	case *poolmessages.CountReserved:
		n := 0
		for _, r := range k.reservations {
			if r.pool == m.Pool && r.made.IsZero() {
				n++
			}
		}
		m.Send(n, nil)
	case *poolmessages.WantsOfClass:
		m.Send(k.wants(m.Class), nil)
	case *poolmessages.ReleasePool:
		k.release(m)
	case *poolmessages.ClassCapacity:
		m.Send(k.capacity(m))
	case *poolmessages.ClassSeen:
		k.see(m.Object)
		k.update(c, m.Object.Name)
	case *poolmessages.ClassGone:
		delete(k.classes, m.Name)
	case *poolmessages.PoolMember:
		before := k.pools[m.Pool]
		if before == nil {
			k.pools[m.Pool] = &poolmessages.PoolReport{Name: m.Pool, Class: m.Class, Kind: m.Kind, UUID: m.UUID}
		} else if before.Class != m.Class {
			moved := *before
			moved.Class = m.Class
			k.pools[m.Pool] = &moved
			k.update(c, before.Class)
		}
		k.update(c, m.Class)
	case *poolmessages.PoolReport:
		k.learn(c, m)
		k.update(c, m.Class)
		k.expire(c)
	case *poolmessages.VolumeRetained:
		k.retention.set(m, time.Now())
		k.expire(c)
	case *poolmessages.VolumeNotRetained:
		k.retention.remove(m.Name)
	case *retainedEnded:
		k.ended(c, m)
	case *retentionDue:
		k.expire(c)
	case *poolmessages.LifespanOfClass:
		m.Send(k.lifespanOf(m.Class), nil)
	case *poolmessages.NameOfClass:
		m.Send(k.nameOf(m.Class))
	case *actor.Stopping:
		actors.StopTimer(k.expiry)
	case *poolmessages.PoolGone:
		k.retention.forget(m.Name)
		if p := k.pools[m.Name]; p != nil {
			delete(k.pools, m.Name)
			k.update(c, p.Class)
		}
	case *poolmessages.Listed:
		k.listed = true
		for name := range k.classes {
			k.update(c, name)
		}
		k.expire(c)
	case *classSaved:
		k.saved(c, m)
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
	case known.object.UID != object.UID || !rules.IsOlder(rules.ResourceVersion(object), rules.ResourceVersion(known.object)):
		known.object = object
	}
}

// learn takes over how a pool is. A pool that was deleted since stays so.
func (k *classes) learn(c actor.Context, m *poolmessages.PoolReport) {
	if k.pools[m.Name] == nil {
		return
	}
	k.pools[m.Name] = m
	taken := int64(0)
	for name, r := range k.reservations {
		if r.pool == m.Name && !r.made.IsZero() && m.Measured.After(r.made) {
			taken += r.bytes
			delete(k.reservations, name)
		}
	}
	if k.retention.learn(m, taken) {
		k.tellFutile(c, m.Name)
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
func (k *classes) members(class string) (all []*poolmessages.PoolReport) {
	for _, name := range slices.Sorted(maps.Keys(k.pools)) {
		if p := k.pools[name]; p.Class == class {
			all = append(all, p)
		}
	}
	return all
}

// candidate is a pool for the allocator, without what is reserved for one volume that is being made or grows.
func (k *classes) candidate(p *poolmessages.PoolReport, but string) pools.Candidate {
	bytes, making := int64(0), 0
	for name, r := range k.reservations {
		if r.pool == p.Name && (name != but || !r.made.IsZero()) {
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
			if p.Kind == pools.KindLocal {
				one.Provisioned -= p.Counts.Retained
				one.Available = min(one.Available+p.Counts.Retained, one.Total)
			}
			room := one.Room()
			all.Available += room
			all.Largest = max(all.Largest, room)
		}
	}
	return all, nil
}

func (k *classes) nameOf(class string) (string, error) {
	if class != "" {
		return class, nil
	}
	c, err := k.find(class)
	if err != nil {
		return "", volume.Invalid("parameters", "name no class that there is: "+err.Error())
	}
	return c.object.Name, nil
}

// lifespanOf answers; a class that is gone keeps nothing.
func (k *classes) lifespanOf(class string) time.Duration {
	if c := k.classes[class]; c != nil && c.object.Spec.Lifespan != nil {
		return c.object.Spec.Lifespan.Duration
	}
	return 0
}
