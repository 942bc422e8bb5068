package pools

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/array"
	"github.com/katbox/katbox/internal/pools/v1alpha1"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// poolSeen tells a pool's actor what its Pool is. Supervisor -> pool.
type poolSeen struct {
	messages.Routing
	object *v1alpha1.Pool
	// counts are the resources that it has.
	counts poolCounts
}

// poolEnds tells a pool's actor that there is no Pool any more. Supervisor -> pool.
type poolEnds struct{ messages.Routing }

// poolLeft tells the actor of a pool that is being deleted that it has one resource less.
// Supervisor -> pool.
type poolLeft struct {
	messages.Routing
	counts poolCounts
}

type (
	// probeDue: it is time to ask the array.
	probeDue struct{}
	// probeEnded, syncEnded, saveEnded and dropEnded announce that a worker has ended.
	probeEnded struct{}
	syncEnded  struct{}
	saveEnded  struct{}
	dropEnded  struct{}
)

// poolActor watches over one pool: it asks the array how it is, now and then, configures it, imports
// what is there, and writes what it finds to the Pool's status, which no one else does. Each of that
// happens in a worker of its own, and one of each kind runs at a time.
//
// A restart keeps the instance. Only Receive uses the fields, so it needs no lock.
type poolActor struct {
	*environment
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
	access Access
	mode   array.Mode
	// counts are the resources that it has, once counted.
	counts  poolCounts
	counted bool
	// failures counts the probes in a row without an answer; doubted: a call got none either.
	failures int
	doubted  bool
	// probing, syncing, saving and dropping deliver what a worker has found; nil when none runs.
	probing  chan probe
	syncing  chan synced
	saving   chan saved
	dropping chan error
	// again: another probe is wanted once the one that runs has ended.
	again bool
	// soon: the next probe comes sooner than usual.
	soon bool
	// syncedAt is when the last comparison has ended, in this run; lastSync for people.
	syncedAt time.Time
	// refused are the IDs of what could not be imported; the comparison that runs uses it.
	refused map[string]bool
	// dirty: the status has to be written. told is what the last Event said.
	dirty    bool
	told     v1alpha1.PoolState
	toldWhy  string
	toldMode array.Mode
	blocked  string
	timer    *time.Timer
	received uint64
}

func poolProps(env *environment, name string, object *v1alpha1.Pool) *actor.Props {
	p := &poolActor{environment: env, name: name, object: object, refused: map[string]bool{}}
	if object != nil {
		p.remember()
	}
	return actor.PropsFromFunc(p.Receive, actor.WithReceiverMiddleware(actors.Recovering(env.Log), p.counting), actors.AtOnce)
}

// remember takes over what an earlier run has found.
func (p *poolActor) remember() {
	p.verdicts, p.iqn = known(p.object), placeOf(p.object).iqn
	p.told = p.object.Status.State
	p.toldMode, p.mode = array.Mode(p.object.Status.Capacity.Mode), array.Mode(p.object.Status.Capacity.Mode)
}

func (p *poolActor) counting(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		if _, ok := envelope.Message.(messages.ToVolume); ok {
			p.received++
		}
		next(c, envelope)
	}
}

func (p *poolActor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *messages.UsePool:
		p.use(m)
		return
	case *messages.DoubtPool:
		p.doubted = true
		m.Send(struct{}{}, nil)
		p.probeNow(c)
	case *poolSeen:
		p.counts, p.counted = m.counts, true
		p.see(c, m.object)
	case *poolEnds:
		p.ended = true
		actors.StopTimer(p.timer)
	case *poolLeft:
		p.counts, p.counted = m.counts, true
		p.dirty = true
		p.finalize(c)
	case *poolLooks:
		p.lookAgain(c, m.soon)
	case *probeDue:
		p.probeNow(c)
	case *actor.Started, *probeEnded, *syncEnded, *saveEnded, *dropEnded, *messages.Resume:
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
	if found, ok := take(&p.probing); ok {
		p.probed(c, found)
	}
	if found, ok := take(&p.syncing); ok {
		p.synced(c, found)
		if p.object.DeletionTimestamp != nil {
			p.finalize(c)
		}
	}
	if found, ok := take(&p.saving); ok {
		p.saved(found)
	}
	if err, ok := take(&p.dropping); ok && err != nil {
		p.Log.Error(err, "a pool that is being deleted cannot go yet", "pool", p.name)
	}
	if p.ended {
		if p.probing == nil && p.syncing == nil && p.saving == nil && p.dropping == nil {
			c.Send(c.Parent(), &messages.AtRest{ID: keyOf(kindPool, p.name), Actor: c.Self().Id, Received: p.received})
		}
		return
	}
	if p.object != nil {
		p.tell(c)
		p.save(c)
	}
}

// take returns what a worker has found, if it has ended.
func take[T any](from *chan T) (found T, ok bool) {
	select {
	case found = <-*from: // a nil channel delivers nothing
		*from = nil
		return found, true
	default:
		return found, false
	}
}

// work runs f in a worker; what it returns comes out of the channel, and the message tells that.
func work[T any](p *poolActor, c actor.Context, into *chan T, ended any, f func(context.Context) T) {
	found := make(chan T, 1)
	root, self := c.ActorSystem().Root, c.Self()
	err := p.Workers.Go(func() {
		var value T
		if err := actors.Guard(p.Log, func() error { value = f(p.ctx); return nil }); err != nil {
			value = failedWith[T](err)
		}
		found <- value
		root.Send(self, ended)
	})
	if err == nil {
		*into = found
	}
}

// failedWith is what a worker has found that has panicked.
func failedWith[T any](err error) (value T) {
	switch v := any(&value).(type) {
	case *probe:
		v.err = err
	case *synced:
		v.err = err
	case *saved:
		v.err = err
	case *error:
		*v = err
	}
	return value
}

// use answers a task that wants to change something on the array.
func (p *poolActor) use(m *messages.UsePool) {
	if p.ended || p.object == nil {
		m.Fail(errUnknownPool(p.name))
		return
	}
	if !p.usable() || p.client == nil {
		state := p.state(false)
		why := p.reason(state)
		if p.client == nil && why == "" {
			why = "the " + mediumOf(kindOfPool(p.object)) + " has not answered yet"
		}
		m.Fail(fmt.Errorf("%w: pool %s is %s: %s", volume.ErrUnavailable, p.name, state, why))
		return
	}
	m.Send(messages.UsablePool{
		Name: p.name, Array: p.client, PoolID: p.last.on.ID, IQN: p.last.health.IQN, Portal: p.last.health.Portal, CHAPSecret: p.last.chapSecret,
		Disk: p.last.health.Disk,
	}, nil)
}

// see takes over the Pool. Another generation is configured and imported anew.
func (p *poolActor) see(c actor.Context, object *v1alpha1.Pool) {
	if p.object != nil && older(versionOf(object), versionOf(p.object)) {
		return
	}
	first := p.object == nil || p.probing == nil && p.timer == nil
	changed := p.object != nil && object.Generation != p.object.Generation
	leaving := object.DeletionTimestamp != nil && (p.object == nil || p.object.DeletionTimestamp == nil)
	if p.object == nil {
		p.object = object
		p.remember()
	}
	p.object = object
	if changed {
		p.configured, p.imported = verdict{}, verdict{}
	}
	if first || changed || leaving {
		p.dirty = true
		p.probeNow(c)
	} else if object.DeletionTimestamp != nil {
		p.finalize(c)
	}
}

// probeNow asks the array, or does so again once it has answered.
func (p *poolActor) probeNow(c actor.Context) {
	if p.object == nil || p.ended {
		return
	}
	if p.probing != nil {
		p.again = true
		return
	}
	actors.StopTimer(p.timer)
	p.timer, p.soon = nil, false
	asked := probe{object: p.object, access: p.access, client: p.client, configured: p.configured, iqn: p.iqn}
	work(p, c, &p.probing, &probeEnded{}, func(ctx context.Context) probe { return p.probe(ctx, asked) })
	if p.probing == nil {
		p.schedule(c, p.ProbeInterval)
	}
}

// schedule sets the timer for the next probe, with a tenth of jitter.
func (p *poolActor) schedule(c actor.Context, in time.Duration) {
	in += time.Duration((rand.Float64() - 0.5) / 5 * float64(in))
	root, self := c.ActorSystem().Root, c.Self()
	actors.StopTimer(p.timer)
	p.timer = time.AfterFunc(in, func() { root.Send(self, &probeDue{}) })
}

// nodesConnect is how long after the controller's start its nodes may need to connect.
const nodesConnect = 30 * time.Second

// lookAfter is how soon a pool on a node is asked how it is when something there has changed.
const lookAfter = 2 * time.Second

// lookAgain asks the node of a pool how that is: at once, or soon.
func (p *poolActor) lookAgain(c actor.Context, soon bool) {
	switch {
	case !soon:
		p.probeNow(c)
	case p.probing != nil:
		p.soon = true
	case !p.soon && p.timer != nil:
		p.soon = true
		p.schedule(c, lookAfter)
	}
}

// confirmAfter is how much sooner than usual a probe without an answer is repeated.
const confirmAfter = 5

// probed takes over what a probe has found.
func (p *poolActor) probed(c actor.Context, found probe) {
	if p.ctx.Err() != nil {
		return
	}
	if found.counted {
		p.counts, p.counted = found.counts, true
	}
	next := p.ProbeInterval
	if found.err != nil {
		if p.unanswered(found.err) {
			next /= confirmAfter
		}
	} else {
		p.answered(found)
	}
	p.doubted, p.dirty = false, true
	if p.soon {
		next = min(next, lookAfter)
	}
	switch {
	case p.ended:
	case p.again:
		p.again = false
		p.probeNow(c)
	default:
		p.schedule(c, next)
	}
	p.startSync(c)
	if p.object.DeletionTimestamp != nil {
		p.finalize(c)
	}
}

// unanswered: the array counts as unreachable after the second probe without an answer, or the first
// one when a call got none either, or when it has not been reached before. It returns true while the
// failure has to be confirmed.
func (p *poolActor) unanswered(err error) (confirm bool) {
	p.failures++
	if p.reachable.status == "" && errors.Is(err, array.ErrNodeAway) && time.Since(p.started) < nodesConnect {
		return true
	}
	if p.reachable.ok() && p.failures < 2 && !p.doubted {
		return true
	}
	p.reachable = bad(unreachableReason(err), volume.OneLine(err))
	return false
}

// unreachableReason is one word for why an array gives no answer.
func unreachableReason(err error) string {
	switch {
	case errors.Is(err, array.ErrNodeAway):
		return "NodeAway"
	case errors.Is(err, array.ErrDiskAway):
		return "DiskAway"
	case errors.Is(err, array.ErrCredentials):
		return "InvalidCredentials"
	case errors.Is(err, array.ErrTLS):
		return "TLSError"
	case errors.Is(err, array.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return "Timeout"
	case errors.Is(err, array.ErrBadAnswer):
		return "BadAnswer"
	}
	return "NetworkError"
}

// answered takes over what the array has said.
func (p *poolActor) answered(found probe) {
	p.failures, p.reachable = 0, good("Reachable")
	p.compatible = found.compatible
	p.access, p.client = found.access, found.client
	if !p.compatible.ok() {
		return
	}
	p.last, p.iqn = found, found.health.IQN
	p.mode = modeOf(found.on, p.object.Spec.CapacityThresholds)
	p.capacity = capacityVerdict(p.mode, found.on, kindOfPool(p.object))
	p.healthy = good("Healthy")
	if found.on.Failed != "" {
		p.healthy = bad("PoolFailed", found.on.Failed)
	}
	if found.object.Generation != p.object.Generation {
		p.again = true // it was changed meanwhile
		return
	}
	p.configured = found.configured
}
