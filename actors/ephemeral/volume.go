package ephemeral

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

const (
	// maxDeferred bounds the requests that wait for an operation to end.
	maxDeferred = 64
	// maxAsides bounds those of them that come from people and gateways: the others are for calls.
	maxAsides = 8
)

// volumeActor owns one volume that is mounted or changing. One operation runs at a time; a request
// that meets it shares its outcome when it asks for the same thing, and is answered that the volume
// is busy when not.
//
// A restart keeps the instance: the operation that is under way goes on through it. Only Receive uses
// the fields, except measuring, so it needs no lock.
type volumeActor struct {
	*environment
	id     volume.ID
	record *volume.Record
	// recorded is what was recorded last: what is learned of a volume in use is recorded with its next change.
	recorded *volume.Record
	// size is what it took while it slept; zero if that is not known, or is out of date.
	size volume.Size
	// deletionOrdered: a publish takes that back. deletion says why.
	deletionOrdered bool
	deletion
	// deletionFailed is why the last deletion did not succeed, deletionTries how often none has.
	deletionFailed error
	deletionTries  int
	// resumeLater: an order to resume met a running operation.
	resumeLater bool
	// running is the operation under way; nil when there is none.
	running *operation
	// deferred are requests that wait for the running operation to end.
	deferred []messages.Request
	// publish is the last one that did not have to wait, or waits no more.
	publish *messages.PublishVolume
	// stuck is the last failure to unmount, failures how many there were in a row.
	stuck    error
	failures int
	// stuckIn is the phase in which the metrics show the volume as stuck, if they do.
	stuckIn volume.Phase
	// measuring: a stats request runs beside the operations.
	measuring atomic.Bool
	// absentSince is when the volume's pod directory was first seen to be gone, nowhereSince when the volume
	// was first seen to be mounted nowhere although the directory is there.
	absentSince, nowhereSince time.Time
	// leavingSince is when the kubelet first asked to unmount what it has not asked to mount again.
	leavingSince time.Time
	// doubted: it is mounted nowhere, and nothing reports whether its pod will come back.
	doubted bool
	// received counts the supervisor's messages.
	received uint64
}

func volumeProps(env *environment, id volume.ID, was resting, more ...actor.ReceiverMiddleware) *actor.Props {
	v := &volumeActor{environment: env, id: id, record: was.record, recorded: was.record, size: was.size}
	middleware := append([]actor.ReceiverMiddleware{actors.Recovering(env.Log), v.counting}, more...)
	return actor.PropsFromFunc(v.Receive, actor.WithReceiverMiddleware(middleware...), actors.AtOnce)
}

// counting counts the supervisor's messages, also those at which the actor panics: it would never be
// at rest again.
func (v *volumeActor) counting(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		if _, ok := envelope.Message.(messages.ToVolume); ok {
			v.received++
		}
		next(c, envelope)
	}
}

func (v *volumeActor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case messages.Request:
		v.request(c, m)
	case *messages.DeleteVolume:
		v.orderDeletion(c, m)
	case *messages.Resume:
		v.resume(c)
	case *messages.PodsSeen:
		v.lookForPod(c, m)
	case *actor.Started:
		v.finish(c)
		return // a message follows, after which the volume may be at rest
	case *finished:
		v.finish(c)
	case *actor.Stopping:
		v.refuseWaiting()
		return
	default:
		actors.IgnoreLifecycle(v.Log, c)
		return
	}
	v.reportStuck()
	v.restIfIdle(c)
}

// request handles what is asked of the volume.
func (v *volumeActor) request(c actor.Context, m messages.Request) {
	if v.running != nil && v.running.brief && changes(m) && v.defers(m) {
		return
	}
	switch m := m.(type) {
	case *messages.PublishVolume:
		if v.record == nil && v.running == nil && m.Publication.Refused != nil {
			m.Fail(m.Publication.Refused) // without an operation, whose outcome another one would share
			return
		}
		v.publish = m
		v.absentSince, v.nowhereSince, v.leavingSince = time.Time{}, time.Time{}, time.Time{} // the kubelet wants it
		run := func(t *task) error { return t.publish(m.Publication) }
		v.change(c, m, m.Reply, &operation{name: publishing, run: run, covers: samePublish(m)})
	case *messages.UnpublishVolume:
		if v.leavingSince.IsZero() {
			v.leavingSince = time.Now()
		}
		insisted := time.Since(v.leavingSince) >= v.OrphanGrace
		run := func(t *task) error {
			t.insisted = insisted
			return t.unpublish(m.Target)
		}
		v.change(c, m, m.Reply, &operation{name: "unpublish", run: run, covers: sameUnpublish(m)})
	case *messages.AdoptVolume:
		v.change(c, m, m.Reply, &operation{name: "adopt", run: func(t *task) error { return t.adopt(m.Pod) }})
	case *messages.VolumeStats:
		v.measure(c, m)
	case *messages.PurgeVolume:
		v.purge(c, m)
	case *messages.HoldVolume:
		v.hold(c, m)
	case *messages.OwnVolume:
		v.own(c, m)
	case *messages.ProlongVolume:
		v.prolong(c, m)
	case *messages.EndVolume:
		v.end(c, m)
	default:
		m.Fail(fmt.Errorf("volume %s is asked %T, which it does not know", v.id, m))
	}
}

// samePublish reports which requests the outcome of a publish answers, too: those that ask for the same in all that
// decides how it ends.
func samePublish(m *messages.PublishVolume) func(messages.Request) bool {
	return func(other messages.Request) bool {
		o, ok := other.(*messages.PublishVolume)
		if !ok {
			return false
		}
		p, q := m.Publication, o.Publication
		return p.Pod == q.Pod && p.Target.SameMount(q.Target) && p.Terms == q.Terms && p.Attach == q.Attach &&
			(p.Refused == nil) == (q.Refused == nil)
	}
}

func sameUnpublish(m *messages.UnpublishVolume) func(messages.Request) bool {
	return func(other messages.Request) bool {
		o, ok := other.(*messages.UnpublishVolume)
		return ok && o.Target == m.Target
	}
}

// change starts the operation that a request asks for, or answers it at once.
func (v *volumeActor) change(c actor.Context, m messages.Request, reply messages.Reply[struct{}], op *operation) {
	route := m.Route()
	switch running := v.running; {
	case !route.Deadline.IsZero() && !time.Now().Before(route.Deadline):
		if running == nil {
			v.tell(c) // it may have been a publish
		}
		m.Fail(context.DeadlineExceeded) // the caller does not wait any more
	case running == nil:
		op.origin, op.waiting = route.Origin, []messages.Reply[struct{}]{reply}
		v.start(c, op)
	case running.covers != nil && running.covers(m):
		running.waiting = append(running.waiting, reply)
	case running.deletes && isUnpublish(m) && v.defers(m):
	default:
		m.Fail(errBusy(v.id))
	}
}

// defers keeps a request for after the operation that is running. The kubelet sends one at a time;
// bounds keep other callers from piling them up.
func (v *volumeActor) defers(m messages.Request) bool {
	if len(v.deferred) >= maxDeferred || isAside(m) && count(v.deferred, isAside) >= maxAsides {
		return false
	}
	v.deferred = append(v.deferred, m)
	return true
}

func count(all []messages.Request, are func(messages.Request) bool) (n int) {
	for _, m := range all {
		if are(m) {
			n++
		}
	}
	return n
}

// isAside reports whether a request is none of the kubelet's.
func isAside(m messages.Request) bool {
	switch m.(type) {
	case *messages.OwnVolume, *messages.EndVolume, *messages.HoldVolume:
		return true
	}
	return false
}

// changes reports whether a request may change the volume.
func changes(m messages.Request) bool {
	switch m.(type) {
	case *messages.VolumeStats:
		return false
	}
	return true
}

func isUnpublish(m messages.Request) bool {
	_, ok := m.(*messages.UnpublishVolume)
	return ok
}

// measure answers a stats request beside the running operation, one at a time: on a file system
// that hangs they would use up all workers.
func (v *volumeActor) measure(c actor.Context, m *messages.VolumeStats) {
	if !v.measuring.CompareAndSwap(false, true) {
		m.Fail(fmt.Errorf("%w: volume %s is being measured; try again", volume.ErrBusy, v.id))
		return
	}
	ctx, cancel := v.ctx, context.CancelFunc(func() {})
	if !m.Deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, m.Deadline)
	}
	id, record := v.id, v.record
	root, self := c.ActorSystem().Root, c.Self()
	err := v.Workers.Go(func() {
		defer cancel()
		var stats volume.Stats
		err := actors.Guard(v.Log, func() (err error) {
			stats, err = v.stats(ctx, record, id, m.Path)
			return err
		})
		v.measuring.Store(false)
		m.Send(stats, err)
		root.Send(self, &finished{})
	})
	if err != nil {
		cancel()
		v.measuring.Store(false)
		m.Fail(err)
	}
}

// restIfIdle tells the supervisor that the volume needs no actor any more, if it needs none.
func (v *volumeActor) restIfIdle(c actor.Context) {
	if v.running != nil || v.measuring.Load() || v.deletionOrdered {
		return
	}
	if v.record == nil || !v.record.Phase.Live() {
		c.Send(c.Parent(), &messages.AtRest{ID: v.id, Actor: c.Self().Id, Received: v.received,
			State: resting{record: v.record, failed: v.deletionFailed, tries: v.deletionTries}})
	}
}

// refuseWaiting answers the callers that wait for an operation whose end this actor will not see.
func (v *volumeActor) refuseWaiting() {
	if v.running == nil {
		return
	}
	for _, waiting := range v.running.waiting {
		waiting.Fail(actors.ErrStopping)
	}
	for _, m := range v.deferred {
		m.Fail(actors.ErrStopping)
	}
}
