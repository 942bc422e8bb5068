package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// stillStuck asks the supervisor to be resumed, if there is anything to resume. A
// volume that cannot be deleted goes to sleep until it is tried again: on a disk that
// fails there may be a million of them.
func (v *volumeActor) stillStuck(c actor.Context, err error) {
	switch {
	case v.unfinished() == nil:
	case v.deletes():
		v.slot.condemned, v.slot.failed = false, err
		v.slot.tries++
		c.Send(v.supervisor, &messages.Stuck{ID: v.slot.id, Actor: c.Self().Id, Phase: volume.Deleting, Attempt: v.slot.tries, Err: err, Record: v.known()})
	default:
		v.slot.stuck = err
		v.slot.failures++
		c.Send(v.supervisor, &messages.Stuck{ID: v.slot.id, Actor: c.Self().Id, Phase: v.slot.record.Phase, Attempt: v.slot.failures, Err: err, Record: v.known()})
	}
}

// unfinished returns what the volume is in the middle of, nil when it is not.
func (v *volumeActor) unfinished() func(*task) error {
	if v.slot.record == nil {
		return nil
	}
	switch {
	case v.deletes():
		return (*task).delete
	case v.slot.record.Phase == volume.Unpublishing:
		return (*task).resumeUnpublish
	}
	for _, target := range v.slot.record.Targets {
		if target.Leaving {
			return (*task).resumeUnpublish
		}
	}
	return nil
}

// known returns the volume's record, or what there is instead.
func (v *volumeActor) known() volume.Record {
	if v.slot.record == nil {
		return volume.Record{ID: v.slot.id}
	}
	return *v.slot.record
}

// tellStuck has the metrics say whether the volume is stuck. It compares, so that
// a message at which the actor panics takes nothing away.
func (v *volumeActor) tellStuck() {
	var in volume.Phase
	if v.slot.stuck != nil && v.unfinished() != nil && !v.deletes() {
		in = v.slot.record.Phase
	}
	v.metrics.VolumeStuck(v.slot.stuckIn, in)
	v.slot.stuckIn = in
}

// deletes tells whether the next thing to do with the volume is its deletion.
func (v *volumeActor) deletes() bool {
	return v.slot.condemned || v.slot.record.Phase == volume.Deleting
}

// condemn has the volume deleted, as only the retention actor asks for.
func (v *volumeActor) condemn(c actor.Context, m *messages.DeleteVolume) {
	v.slot.condemned = v.slot.record != nil && v.slot.record.Phase == volume.Retained
	v.slot.reason, v.slot.factor = m.Reason, m.Factor
	v.slot.failed, v.slot.tries = nil, m.Tries
	v.carryOn(c)
}

// carryOn goes on with what the volume is in the middle of.
func (v *volumeActor) carryOn(c actor.Context) {
	if v.slot.running != nil {
		v.slot.resume = true
		return
	}
	v.slot.resume = false
	if run := v.unfinished(); run != nil {
		name := "resume"
		if v.deletes() {
			name = "delete"
		}
		v.start(c, &operation{name: name, run: run, same: v.isResumed, deletes: v.deletes()})
	}
}

// isResumed tells whether a request asks for an unmount that is being tried
// again anyway.
func (v *volumeActor) isResumed(other messages.Request) bool {
	m, ok := other.(*messages.UnpublishVolume)
	if !ok || v.slot.record == nil {
		return false
	}
	target, ok := v.slot.record.Target(m.Target)
	return ok && target.Leaving
}
