package ephemeral

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// subject is a volume that is mounted or changing. It is the [actors.Changing] of its actor, which alone uses the
// fields, except measuring. So it needs no lock.
type subject struct {
	*environment
	actors.Simple
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
	// publish is the last one that did not have to wait, or waits no more.
	publish *messages.PublishVolume
	// stuck is the last failure to unmount, if it did not succeed since.
	stuck error
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
}

// Asked answers what needs no operation, or does not go with the one that is under way.
func (v *subject) Asked(m messages.Request, during *actors.Operation) bool {
	switch m := m.(type) {
	case *messages.VolumeStats:
		v.measure(m)
		return true
	case *messages.PublishVolume:
		if v.record == nil && during == nil && m.Publication.Refused != nil {
			m.Fail(m.Publication.Refused) // without an operation, whose outcome another one would share
			return true
		}
		v.publish = m
		v.absentSince, v.nowhereSince, v.leavingSince = time.Time{}, time.Time{}, time.Time{} // the kubelet wants it
		if during == nil && m.Expired() {
			v.tell()
		}
	case *messages.UnpublishVolume:
		if v.leavingSince.IsZero() {
			v.leavingSince = time.Now()
		}
	case *messages.PurgeVolume:
		if during != nil && during.Name != deleting {
			m.Fail(errInUse(v.id))
			return true
		}
	case *messages.HoldVolume, *messages.ArchivedVolume:
		if during != nil && during.Name == deleting {
			m.Fail(errGoing(v.id))
			return true
		}
	}
	return false
}

// Plan returns the operation that a request asks for.
func (v *subject) Plan(m messages.Request) *actors.Operation {
	o := operation{origin: m.Route().Origin, asked: true}
	switch m := m.(type) {
	case *messages.PublishVolume:
		o.name, o.same = publishing, samePublish(m)
		o.run = func(t *task) error { return t.publish(m.Publication) }
	case *messages.UnpublishVolume:
		insisted := time.Since(v.leavingSince) >= v.OrphanGrace
		o.name, o.same = "unpublish", sameUnpublish(m)
		o.run = func(t *task) error {
			t.insisted = insisted
			return t.unpublish(m.Target)
		}
	case *messages.AdoptVolume:
		o.name, o.run = "adopt", func(t *task) error { return t.adopt(m.Pod) }
	case *messages.PurgeVolume:
		return v.purge(m)
	case *messages.HoldVolume:
		return v.hold(m)
	case *messages.OwnVolume:
		return v.own(m)
	case *messages.ProlongVolume:
		return v.prolong(m)
	case *messages.EndVolume:
		return v.end(m)
	case *messages.ArchivedVolume:
		return v.archived(m)
	case *messages.KeepLogs:
		return v.keepLogs(m)
	case *messages.KeepEnd:
		return v.keepEnd(m)
	default:
		return nil
	}
	return v.change(o)
}

// Order returns the operation that carries out an order of the owner of all volumes, or of the watch.
func (v *subject) Order(m messages.ToVolume) (*actors.Operation, bool) {
	switch m := m.(type) {
	case *messages.DeleteVolume:
		return v.orderDeletion(m), true
	case *messages.PodsSeen:
		return v.lookForPod(m), true
	}
	return nil, false
}

// Stays reports whether a pod may use the volume, or it is to be deleted.
func (v *subject) Stays() bool { return v.deletionOrdered || v.record != nil && v.record.Phase.Live() }

// Left is what the owner of all volumes keeps of this one.
func (v *subject) Left() any {
	return resting{record: v.record, failed: v.deletionFailed, tries: v.deletionTries}
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

// measure answers a stats request beside the operations, one at a time: on a file system that hangs they would use up
// all workers.
func (v *subject) measure(m *messages.VolumeStats) {
	if !v.measuring.CompareAndSwap(false, true) {
		m.Fail(fmt.Errorf("%w: volume %s is being measured; try again", volume.ErrBusy, v.id))
		return
	}
	ctx, cancel := v.ctx, context.CancelFunc(func() {})
	if !m.Deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, m.Deadline)
	}
	var stats volume.Stats
	record, answer := v.record, func(err error) {
		cancel()
		v.measuring.Store(false)
		m.Send(stats, err)
	}
	err := actors.InWorker(v.System, func() (err error) {
		stats, err = v.stats(ctx, record, v.id, m.Path)
		return err
	}, answer)
	if err != nil {
		answer(err)
	}
}
