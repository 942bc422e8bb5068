package ephemeral

import (
	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// Rest returns the operation that goes on with what the volume is in the middle of. A deletion that has failed is tried
// again by the owner of all volumes.
func (v *subject) Rest() *actors.Operation {
	switch {
	case v.record == nil:
		return nil
	case v.deletes():
		if v.deletionFailed != nil {
			return nil
		}
		return v.delete(nil)
	case v.halfKept():
		return v.change(operation{name: keepingLogs, run: (*task).resumeLogs, same: isKeepLogs})
	case v.unmounts():
		return v.change(operation{name: "resume", run: (*task).resumeUnpublish, same: v.isResumed})
	}
	return nil
}

// stillStuck notes why the volume cannot get on, and returns that if it has to go on by itself. A volume that cannot be
// deleted goes to sleep until its deletion is tried again: on a disk that fails there may be a million of them.
func (v *subject) stillStuck(err error) error {
	switch {
	case v.record == nil:
		return nil
	case v.deletes():
		v.deletionOrdered, v.deletionFailed = false, err
		v.deletionTries++
		if v.reason == volume.Purged && v.record.Phase == volume.Retained {
			v.deletionFailed, v.deletionTries = nil, 0 // the person who asked knows, and nothing has changed
		}
		return nil
	case !v.unmounts() && !v.halfKept():
		return nil
	}
	if v.stuck == nil {
		v.Log.Error(err, "volume is stuck, trying again until it gets on", logkeys.About(v.known(), logkeys.Phase, v.known().Phase.String())...)
	}
	v.stuck = err
	return err
}

// deletes reports whether the next thing to do with the volume is its deletion.
func (v *subject) deletes() bool {
	return v.deletionOrdered || v.record.Phase == volume.Deleting
}

// unmounts reports whether an unmount was ordered that has not succeeded yet.
func (v *subject) unmounts() bool {
	if v.record.Phase == volume.Unpublishing {
		return true
	}
	for _, target := range v.record.Targets {
		if target.Leaving {
			return true
		}
	}
	return false
}

// known returns the volume's record, or what there is instead.
func (v *subject) known() volume.Record {
	if v.record == nil {
		return volume.Record{ID: v.id}
	}
	return *v.record
}

// reportStuck sets the metrics to whether the volume is stuck. It compares, so that a message at
// which the actor panics takes nothing away.
func (v *subject) reportStuck() {
	var in volume.Phase
	if v.stuck != nil && v.record != nil && !v.deletes() && v.unmounts() {
		in = v.record.Phase
	}
	v.Metrics.VolumeStuck(v.stuckIn, in)
	v.stuckIn = in
}

// orderDeletion takes the order to delete the volume, if it is retained.
func (v *subject) orderDeletion(m *messages.DeleteVolume) *actors.Operation {
	v.deletionOrdered = v.record != nil && v.record.Phase == volume.Retained
	v.deletion = deletion{reason: m.Reason, factor: m.Factor}
	v.deletionFailed, v.deletionTries = nil, m.Tries
	return v.Rest()
}

// delete returns the operation that deletes the volume, for whom asked. A deletion that runs does for all who ask.
func (v *subject) delete(asked *messages.Origin) *actors.Operation {
	return v.change(operation{name: deleting, origin: asked, run: (*task).delete, same: func(m messages.Request) bool {
		_, ok := m.(*messages.PurgeVolume)
		return ok
	}})
}

// isResumed reports whether a request asks for an unmount that is being tried again anyway.
func (v *subject) isResumed(other messages.Request) bool {
	m, ok := other.(*messages.UnpublishVolume)
	if !ok || v.record == nil {
		return false
	}
	target, ok := v.record.Target(m.Target)
	return ok && target.Leaving
}
