package ephemeral

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/logkeys"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// stillStuck asks the supervisor to be resumed, if there is anything to resume. A volume that
// cannot be deleted goes to sleep until its deletion is tried again: on a disk that fails there may
// be a million of them.
func (v *volumeActor) stillStuck(c actor.Context, err error) {
	switch {
	case v.unfinished() == nil:
	case v.deletes():
		v.state.deletionOrdered, v.state.deletionFailed = false, err
		v.state.deletionTries++
	default:
		v.state.stuck = err
		v.state.failures++
		if v.state.failures == 1 {
			v.log.Error(err, "volume is stuck, trying again until it gets on", logkeys.About(v.known(), logkeys.Phase, v.known().Phase.String())...)
		}
		c.Send(c.Parent(), &messages.Stuck{ID: v.state.id, Actor: c.Self().Id, Attempt: v.state.failures})
	}
}

// unfinished returns what the volume is in the middle of, nil when it is not.
func (v *volumeActor) unfinished() func(*task) error {
	if v.state.record == nil {
		return nil
	}
	switch {
	case v.deletes():
		return (*task).delete
	case v.state.record.Phase == volume.Unpublishing:
		return (*task).resumeUnpublish
	}
	for _, target := range v.state.record.Targets {
		if target.Leaving {
			return (*task).resumeUnpublish
		}
	}
	return nil
}

// known returns the volume's record, or what there is instead.
func (v *volumeActor) known() volume.Record {
	if v.state.record == nil {
		return volume.Record{ID: v.state.id}
	}
	return *v.state.record
}

// reportStuck sets the metrics to whether the volume is stuck. It compares, so that a message at
// which the actor panics takes nothing away.
func (v *volumeActor) reportStuck() {
	var in volume.Phase
	if v.state.stuck != nil && v.unfinished() != nil && !v.deletes() {
		in = v.state.record.Phase
	}
	v.metrics.VolumeStuck(v.state.stuckIn, in)
	v.state.stuckIn = in
}

// deletes tells whether the next thing to do with the volume is its deletion.
func (v *volumeActor) deletes() bool {
	return v.state.deletionOrdered || v.state.record.Phase == volume.Deleting
}

// orderDeletion takes the order to delete the volume, if it is retained.
func (v *volumeActor) orderDeletion(c actor.Context, m *messages.DeleteVolume) {
	v.state.deletionOrdered = v.state.record != nil && v.state.record.Phase == volume.Retained
	v.state.reason, v.state.factor = m.Reason, m.Factor
	v.state.deletionFailed, v.state.deletionTries = nil, m.Tries
	v.resume(c)
}

// resume goes on with what the volume is in the middle of.
func (v *volumeActor) resume(c actor.Context) {
	if v.state.running != nil {
		v.state.resumeLater = true
		return
	}
	v.state.resumeLater = false
	if run := v.unfinished(); run != nil {
		name := "resume"
		if v.deletes() {
			name = "delete"
		}
		v.start(c, &operation{name: name, run: run, covers: v.isResumed, deletes: v.deletes()})
	}
}

// isResumed tells whether a request asks for an unmount that is being tried again anyway.
func (v *volumeActor) isResumed(other messages.Request) bool {
	m, ok := other.(*messages.UnpublishVolume)
	if !ok || v.state.record == nil {
		return false
	}
	target, ok := v.state.record.Target(m.Target)
	return ok && target.Leaving
}
