package actors

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/logkeys"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// maxLater bounds the unpublishes that wait for a deletion to end.
const maxLater = 64

// volumeActor owns one volume that is mounted or changing. One operation runs
// at a time; a request that meets it shares its outcome when it asks for the
// same thing and is told that the volume is busy when not.
type volumeActor struct {
	*environment
	supervisor *actor.PID
	slot       *slot
}

// slot is what a volume actor must not lose when it is restarted: above all
// the operation that is under way, which a restart does not undo. Only Receive
// uses it, but for the count of what runs beside, so it needs no lock.
type slot struct {
	id     volume.ID
	record *volume.Record
	// condemned: its deletion was ordered. A publish takes that back.
	condemned bool
	// reason is why, factor the pressure factor that made it so early.
	reason volume.Reason
	factor float64
	// failed is why the deletion did not succeed that was ordered last, tries how often
	// it has not.
	failed error
	tries  int
	// resume: an order to carry on met a running operation.
	resume bool
	// running is the operation under way; nil when there is none.
	running *operation
	// later are unpublishes that met a deletion.
	later []*messages.UnpublishVolume
	// stuck is the last failure to unmount, failures how many there were in a row.
	stuck    error
	failures int
	// stuckIn is the phase in which the metrics have the volume as stuck, zero when
	// they have not.
	stuckIn volume.Phase
	// beside counts what runs beside the operations: a stats request that is not
	// answered yet.
	beside    atomic.Int64
	measuring atomic.Bool
	// absentSince is when the volume's pod directory was first seen to be gone.
	absentSince time.Time
	// received counts the supervisor's messages.
	received uint64
}

// operation is one change of a volume.
type operation struct {
	// name is for traces.
	name string
	// origin is the call that asked for it first; nil when that is not traced.
	origin *messages.Origin
	run    func(*task) error
	// same tells whether a request asks for what this operation does anyway.
	same func(messages.Request) bool
	// waiting are those who get the outcome.
	waiting []messages.Reply[struct{}]
	// deletes: it is a deletion. It takes a moment, and then there is nothing
	// left to unmount: an unpublish that meets it waits its turn.
	deletes bool
	// ended delivers the outcome. It is not in the message that announces it,
	// because a message at which the actor panics is lost.
	ended   chan *outcome
	outcome *outcome
}

// outcome is what an operation made of its volume.
type outcome struct {
	task *task
	err  error
}

// finished announces that the running operation, or something beside it, has
// ended.
type finished struct{}

func volumeProps(env *environment, supervisor *actor.PID, id volume.ID, record *volume.Record, more ...actor.ReceiverMiddleware) *actor.Props {
	s := &slot{id: id, record: record}
	middleware := append([]actor.ReceiverMiddleware{recovering(env.log)}, more...)
	return actor.PropsFromProducer(func() actor.Actor {
		return &volumeActor{environment: env, supervisor: supervisor, slot: s}
	}, actor.WithReceiverMiddleware(middleware...), atOnce)
}

func (v *volumeActor) Receive(c actor.Context) {
	if _, ok := c.Message().(messages.ToVolume); ok {
		v.slot.received++
	}
	switch m := c.Message().(type) {
	case *messages.PublishVolume:
		v.change(c, m, m.Reply, "publish", func(t *task) error { return t.publish(m.Publication) }, samePublish(m))
	case *messages.UnpublishVolume:
		v.unpublish(c, m)
	case *messages.AdoptVolume:
		v.change(c, m, m.Reply, "adopt", func(t *task) error { return t.adopt(m.Pod) }, nil)
	case *messages.VolumeStats:
		v.measure(c, m)
	case *messages.DeleteVolume:
		v.condemn(c, m)
	case *messages.Resume:
		v.carryOn(c)
	case *messages.PodsSeen:
		v.lookForPod(c, m)
	case *actor.Started, *finished:
		v.finish(c)
	case *actor.Stopping:
		v.refuseWaiting()
		return
	default:
		ignoreLifecycle(v.log, c)
		return
	}
	v.tellStuck()
	v.restIfIdle(c)
}

func samePublish(m *messages.PublishVolume) func(messages.Request) bool {
	return func(other messages.Request) bool {
		o, ok := other.(*messages.PublishVolume)
		return ok && o.Publication.Pod == m.Publication.Pod && o.Publication.Target.SameMount(m.Publication.Target)
	}
}

func sameUnpublish(m *messages.UnpublishVolume) func(messages.Request) bool {
	return func(other messages.Request) bool {
		o, ok := other.(*messages.UnpublishVolume)
		return ok && o.Target == m.Target
	}
}

// change starts what a request asks for, or answers it at once.
func (v *volumeActor) change(c actor.Context, m messages.Request, reply messages.Reply[struct{}], name string, run func(*task) error, same func(messages.Request) bool) {
	switch running := v.slot.running; {
	case !m.Until().IsZero() && !time.Now().Before(m.Until()):
		m.Fail(context.DeadlineExceeded) // nobody waits any more
	case running == nil:
		v.start(c, &operation{name: name, origin: m.Origin(), run: run, same: same, waiting: []messages.Reply[struct{}]{reply}})
	case running.same != nil && running.same(m):
		running.waiting = append(running.waiting, reply)
	case running.deletes && v.defers(m):
	default:
		m.Fail(fmt.Errorf("%w: another operation for volume %s is running; try again", volume.ErrBusy, v.slot.id))
	}
}

// start runs an operation in a goroutine of its own, on a copy of what is known.
func (v *volumeActor) start(c actor.Context, op *operation) {
	op.ended = make(chan *outcome, 1)
	t := &task{environment: v.environment, id: v.slot.id, record: v.slot.record, reason: v.slot.reason, factor: v.slot.factor}
	root, self := c.ActorSystem().Root, c.Self()
	err := v.workers.Go(func() {
		err := guard(v.log, func() error { return t.do(op) })
		op.ended <- &outcome{task: t, err: err}
		root.Send(self, &finished{})
	})
	if err != nil {
		for _, waiting := range op.waiting {
			waiting.Fail(err)
		}
		v.stillStuck(c, err)
		return
	}
	v.slot.running = op
}

// finish takes over what an operation left and answers those who wait for it.
// A restarted actor calls it too, in case that the announcement was lost.
func (v *volumeActor) finish(c actor.Context) {
	op := v.slot.running
	if op == nil {
		return
	}
	if op.outcome == nil {
		select {
		case op.outcome = <-op.ended:
		default:
			return
		}
	}
	t, err := op.outcome.task, op.outcome.err
	v.slot.record = t.record
	if t.record == nil || t.record.Phase.Live() || t.unmounted && t.record.Phase == volume.Retained {
		v.slot.condemned, v.slot.failed, v.slot.tries = false, nil, 0
	}
	for _, waiting := range op.waiting {
		waiting.Send(struct{}{}, err)
	}
	if errors.Is(err, volume.ErrNoSpace) && !op.deletes {
		c.Send(v.eraser, &messages.NoSpace{})
	}
	v.slot.running = nil
	switch {
	case t.stuck != nil:
		v.stillStuck(c, t.stuck)
	case err == nil:
		v.slot.stuck, v.slot.failures = nil, 0
	case len(op.waiting) == 0:
		v.log.Error(err, "operation failed", logkeys.About(v.known())...)
	}
	if v.slot.resume && t.stuck == nil {
		v.carryOn(c)
	}
	v.slot.resume = false
	later := v.slot.later
	v.slot.later = nil
	for _, m := range later {
		v.unpublish(c, m)
	}
}

// defers keeps a request for after the deletion that is running, if it is an
// unpublish. The kubelet sends one at a time; a bound keeps anybody else from
// piling them up.
func (v *volumeActor) defers(m messages.Request) bool {
	unpublish, ok := m.(*messages.UnpublishVolume)
	if !ok || len(v.slot.later) >= maxLater {
		return false
	}
	v.slot.later = append(v.slot.later, unpublish)
	return true
}

func (v *volumeActor) unpublish(c actor.Context, m *messages.UnpublishVolume) {
	v.change(c, m, m.Reply, "unpublish", func(t *task) error { return t.unpublish(m.Target) }, sameUnpublish(m))
}

// measure answers a stats request beside whatever else is going on. One at a
// time: on a file system that hangs they would use up everybody's workers.
func (v *volumeActor) measure(c actor.Context, m *messages.VolumeStats) {
	if !v.slot.measuring.CompareAndSwap(false, true) {
		m.Fail(fmt.Errorf("%w: volume %s is being measured; try again", volume.ErrBusy, v.slot.id))
		return
	}
	ctx, cancel := v.ctx, context.CancelFunc(func() {})
	if !m.Until().IsZero() {
		ctx, cancel = context.WithDeadline(ctx, m.Until())
	}
	id, record, stuck := v.slot.id, v.slot.record, v.slot.stuck
	err := v.runBeside(c, func() {
		defer cancel()
		var stats volume.Stats
		err := guard(v.log, func() (err error) {
			stats, err = v.stats(ctx, record, id, m.Path, stuck)
			return err
		})
		v.slot.measuring.Store(false)
		m.Send(stats, err)
	})
	if err != nil {
		cancel()
		v.slot.measuring.Store(false)
		m.Fail(err)
	}
}

// runBeside runs f in a goroutine of its own, beside whatever operation runs.
// The volume is not at rest before it ends.
func (v *volumeActor) runBeside(c actor.Context, f func()) error {
	root, self := c.ActorSystem().Root, c.Self()
	v.slot.beside.Add(1)
	err := v.workers.Go(func() {
		f()
		v.slot.beside.Add(-1)
		root.Send(self, &finished{})
	})
	if err != nil {
		v.slot.beside.Add(-1)
	}
	return err
}

// lookForPod retains the volume when its pod directory has been gone for the
// grace time: what the kubelet leaves behind without an unpublish. The grace
// time keeps a kubelet that is about to publish again from losing the volume.
func (v *volumeActor) lookForPod(c actor.Context, m *messages.PodsSeen) {
	if v.slot.record == nil || !v.slot.record.Phase.Live() || v.slot.running != nil {
		return
	}
	names := v.podDirectories(v.slot.record)
	if len(names) == 0 {
		return
	}
	for _, name := range names {
		if _, ok := m.Names[name]; ok {
			v.slot.absentSince = time.Time{}
			return
		}
	}
	if v.slot.absentSince.IsZero() {
		v.slot.absentSince = m.At
	}
	if m.At.Sub(v.slot.absentSince) >= v.orphanGrace {
		v.slot.absentSince = time.Time{}
		v.start(c, &operation{name: "abandon", run: (*task).abandon})
	}
}

// restIfIdle tells the supervisor when the volume needs no actor any more.
func (v *volumeActor) restIfIdle(c actor.Context) {
	if v.slot.running != nil || v.slot.beside.Load() > 0 || v.slot.condemned {
		return
	}
	if v.slot.record == nil || !v.slot.record.Phase.Live() {
		c.Send(v.supervisor, &messages.AtRest{ID: v.slot.id, Actor: c.Self().Id, Record: v.slot.record,
			Failed: v.slot.failed, Tries: v.slot.tries, Received: v.slot.received})
	}
}

// refuseWaiting answers those who wait for an operation whose end this actor
// will not see.
func (v *volumeActor) refuseWaiting() {
	if v.slot.running == nil {
		return
	}
	for _, waiting := range v.slot.running.waiting {
		waiting.Fail(fmt.Errorf("%w: the daemon is stopping", volume.ErrUnavailable))
	}
	for _, m := range v.slot.later {
		m.Fail(fmt.Errorf("%w: the daemon is stopping", volume.ErrUnavailable))
	}
}
