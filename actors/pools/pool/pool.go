package pool

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

type (
	// probeDue: it is time to ask the array.
	probeDue struct{}
	// workEnded announces that a worker has ended.
	workEnded struct{}
)

// poolActor watches over one pool: it asks the array how it is, now and then, configures it, imports
// what is there, and writes what it finds to the Pool's status, which no one else does. Each of that
// happens in a worker of its own, and one of each kind runs at a time.
//
// A restart keeps the instance. Only Receive uses the fields, so it needs no lock.
type poolActor struct {
	*env.Environment
	name string
	// object is the Pool, as it was seen last; ended: there is none any more.
	object *v1alpha1.Pool
	ended  bool
	verdicts
	// iqn is the array's identity, once it is known.
	iqn string
	// last is what the last probe that got an answer has found, client what it used.
	last   probe
	client array.Array
	access env.Access
	mode   array.Mode
	// counts are the resources that it has, once counted.
	counts  poolmessages.PoolCounts
	counted bool
	// failures counts the probes in a row without an answer; doubted: a call got none either.
	failures int
	doubted  bool
	// probing, syncing, saving and dropping have what a worker has found.
	probing  actors.Pending[probe]
	syncing  actors.Pending[synced]
	saving   actors.Pending[*v1alpha1.Pool]
	dropping actors.Pending[struct{}]
	// again: another probe is wanted once the one that runs has ended.
	again bool
	// soon: the next probe comes sooner than usual.
	soon bool
	// syncedAt is when the last comparison has ended, in this run; lastSync for people.
	syncedAt time.Time
	// comparedAt is the array's portal at the last comparison that succeeded, lookedAt the attachment that one has asked
	// the array about last.
	comparedAt, lookedAt string
	// refused are the IDs of what could not be imported; the comparison that runs uses it.
	refused map[string]bool
	// classWants is what the class wants of volumes; declines are volumes that the array has refused; encrypts: it has
	// encrypted volumes.
	classWants poolmessages.ClassWants
	declines   map[pools.Needs]poolmessages.Decline
	encrypts   bool
	// dirty: the status has to be written. told is what the last Event said.
	dirty    bool
	told     v1alpha1.PoolState
	toldWhy  string
	toldMode array.Mode
	blocked  string
	timer    *time.Timer
	received uint64
}

// Props describes the actor of a pool. object is its Pool, as it was seen last; nil where that is not known.
func Props(e *env.Environment, name string, object *v1alpha1.Pool) *actor.Props {
	p := &poolActor{Environment: e, name: name, object: object, refused: map[string]bool{}}
	if object != nil {
		p.remember()
	}
	return actor.PropsFromFunc(p.Receive, actor.WithReceiverMiddleware(actors.Recovering(e.Log), actors.Counting(&p.received)), actors.AtOnce)
}

// remember takes over what an earlier run has found.
func (p *poolActor) remember() {
	p.verdicts, p.iqn = known(p.object), rules.PlaceOf(p.object).IQN
	p.told = p.object.Status.State
	p.toldMode, p.mode = array.Mode(p.object.Status.Capacity.Mode), array.Mode(p.object.Status.Capacity.Mode)
}

func (p *poolActor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *poolmessages.UsePool:
		p.use(m)
		return
	case *poolmessages.DoubtPool:
		p.doubted = true
		m.Send(struct{}{}, nil)
		p.probeNow(c)
	case *poolmessages.PoolTook:
		p.took(m)
		m.Send(struct{}{}, nil)
	case *poolmessages.PoolSeen:
		p.counts, p.counted = m.Counts, true
		p.see(c, m.Object)
	case *poolmessages.PoolEnds:
		p.ended = true
		actors.StopTimer(p.timer)
	case *poolmessages.PoolCountsChanged:
		p.counts, p.counted = m.Counts, true
		p.dirty = true
		p.finalize(c)
	case *poolmessages.ProbePool:
		p.lookAgain(c, m.Soon)
	case *probeDue:
		p.probeNow(c)
	case *actor.Started, *workEnded, *messages.Resume:
		// What has ended is taken over below; a restarted actor does so too.
	case *actor.Stopping:
		actors.StopTimer(p.timer)
		return
	default:
		actors.IgnoreLifecycle(p.Log, c)
		return
	}
	p.takeOver(c)
}

// takeOver takes over what workers have found, writes what has changed, and lets the actor end when
// the Pool has.
func (p *poolActor) takeOver(c actor.Context) {
	if found, ok := p.probing.Take(); ok {
		found.Value.err = found.Err
		p.probed(c, found.Value)
	}
	if found, ok := p.syncing.Take(); ok {
		p.synced(c, found.Value, found.Err)
		if p.object.DeletionTimestamp != nil {
			p.finalize(c)
		}
	}
	if found, ok := p.saving.Take(); ok {
		p.saved(found.Value, found.Err)
	}
	if found, ok := p.dropping.Take(); ok && found.Err != nil {
		p.Log.Error(found.Err, "a pool that is being deleted cannot go yet", "pool", p.name)
	}
	if p.ended {
		if !p.probing.Runs() && !p.syncing.Runs() && !p.saving.Runs() && !p.dropping.Runs() {
			c.Send(c.Parent(), &messages.AtRest{ID: messages.KeyOf(rules.KindPool, p.name), Actor: c.Self().Id, Received: p.received})
		}
		return
	}
	if p.object != nil {
		p.tell(c)
		p.save(c)
	}
}

// use answers a task that wants to change something on the array.
func (p *poolActor) use(m *poolmessages.UsePool) {
	if p.ended || p.object == nil {
		m.Fail(rules.UnknownPool(p.name))
		return
	}
	if !p.usable() || p.client == nil {
		state := p.state(false)
		why := p.reason(state)
		if p.client == nil && why == "" {
			why = "the " + rules.Medium(rules.KindOfPool(p.object)) + " has not answered yet"
		}
		m.Fail(fmt.Errorf("%w: pool %s is %s: %s", volume.ErrUnavailable, p.name, state, why))
		return
	}
	m.Send(poolmessages.UsablePool{
		Name: p.name, Array: p.client, PoolID: p.last.on.ID, IQN: p.last.health.IQN, Portal: p.last.health.Portal, CHAPSecret: p.last.chapSecret,
		Disk: p.last.health.Disk,
	}, nil)
}

// see takes over the Pool. Another generation is configured and imported anew.
func (p *poolActor) see(c actor.Context, object *v1alpha1.Pool) {
	if p.object != nil && rules.IsOlder(rules.ResourceVersion(object), rules.ResourceVersion(p.object)) {
		return
	}
	first := p.object == nil || !p.probing.Runs() && p.timer == nil
	changed := p.object != nil && object.Generation != p.object.Generation
	leaving := object.DeletionTimestamp != nil && (p.object == nil || p.object.DeletionTimestamp == nil)
	if p.object == nil {
		p.object = object
		p.remember()
	}
	p.object = object
	if changed {
		p.configured, p.imported = verdict{}, verdict{}
		p.declines = nil // a person has done something
	}
	if first || changed || leaving {
		p.dirty = true
		p.probeNow(c)
	} else if object.DeletionTimestamp != nil {
		p.finalize(c)
	}
}
