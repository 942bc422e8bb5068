package ephemeral

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// stillStuck asks the supervisor to be resumed, if there is anything to resume. A volume that
// cannot be deleted goes to sleep until its deletion is tried again: on a disk that fails there may
// be a million of them.
func (v *volumeActor) stillStuck(c actor.Context, err error) {
	switch {
	case v.unfinished() == nil:
	case v.deletes():
		v.deletionOrdered, v.deletionFailed = false, err
		v.deletionTries++
		if v.reason == volume.Purged && v.record.Phase == volume.Retained {
			v.deletionFailed, v.deletionTries = nil, 0 // the person who asked knows, and nothing has changed
		}
	default:
		v.stuck = err
		v.failures++
		if v.failures == 1 {
			v.Log.Error(err, "volume is stuck, trying again until it gets on", logkeys.About(v.known(), logkeys.Phase, v.known().Phase.String())...)
		}
		c.Send(c.Parent(), &messages.Stuck{ID: v.id, Actor: c.Self().Id, Attempt: v.failures})
	}
}

// unfinished returns what the volume is in the middle of, nil when it is not.
func (v *volumeActor) unfinished() func(*task) error {
	if v.record == nil {
		return nil
	}
	switch {
	case v.deletes():
		return (*task).delete
	case v.record.Phase == volume.Unpublishing:
		return (*task).resumeUnpublish
	}
	for _, target := range v.record.Targets {
		if target.Leaving {
			return (*task).resumeUnpublish
		}
	}
	return nil
}

// known returns the volume's record, or what there is instead.
func (v *volumeActor) known() volume.Record {
	if v.record == nil {
		return volume.Record{ID: v.id}
	}
	return *v.record
}

// reportStuck sets the metrics to whether the volume is stuck. It compares, so that a message at
// which the actor panics takes nothing away.
func (v *volumeActor) reportStuck() {
	var in volume.Phase
	if v.stuck != nil && v.unfinished() != nil && !v.deletes() {
		in = v.record.Phase
	}
	v.Metrics.VolumeStuck(v.stuckIn, in)
	v.stuckIn = in
}

// deletes reports whether the next thing to do with the volume is its deletion.
func (v *volumeActor) deletes() bool {
	return v.deletionOrdered || v.record.Phase == volume.Deleting
}

// orderDeletion takes the order to delete the volume, if it is retained.
func (v *volumeActor) orderDeletion(c actor.Context, m *messages.DeleteVolume) {
	v.deletionOrdered = v.record != nil && v.record.Phase == volume.Retained
	v.deletion = deletion{reason: m.Reason, factor: m.Factor}
	v.deletionFailed, v.deletionTries = nil, m.Tries
	v.resume(c)
}

// resume goes on with what the volume is in the middle of.
func (v *volumeActor) resume(c actor.Context) {
	if v.running != nil {
		v.resumeLater = true
		return
	}
	v.resumeLater = false
	if run := v.unfinished(); run != nil {
		name := "resume"
		if v.deletes() {
			name = "delete"
		}
		v.start(c, &operation{name: name, run: run, covers: v.isResumed, deletes: v.deletes()})
	}
}

// isResumed reports whether a request asks for an unmount that is being tried again anyway.
func (v *volumeActor) isResumed(other messages.Request) bool {
	m, ok := other.(*messages.UnpublishVolume)
	if !ok || v.record == nil {
		return false
	}
	target, ok := v.record.Target(m.Target)
	return ok && target.Leaving
}
