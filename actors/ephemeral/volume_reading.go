package ephemeral

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// describe tells what is known of the volume, as it was before the running operation; except that a
// retained volume that is being published is not retained any more.
func (v *volumeActor) describe(m *messages.DescribeVolume) {
	if v.record == nil {
		m.Fail(errNotFound(v.id))
		return
	}
	factor := 1.0
	if v.deletionOrdered {
		factor = v.factor
	}
	record := *v.record
	if record.Phase == volume.Retained && v.running != nil && v.running.name == publishing {
		record.Phase = volume.Publishing
	}
	m.Send(describe(record, volume.Size{}, factor), nil)
}

// remove deletes the volume for a person, if it is retained. A deletion that runs does for all who
// ask.
func (v *volumeActor) remove(c actor.Context, m *messages.RemoveVolume) {
	switch phase := volume.PhaseOf(v.record); {
	case !m.Deadline.IsZero() && !time.Now().Before(m.Deadline):
		m.Fail(context.DeadlineExceeded)
	case v.running != nil && v.running.deletes:
		v.running.waiting = append(v.running.waiting, m.Reply)
	case v.running != nil, phase.Live():
		m.Fail(errInUse(v.id))
	case phase == volume.Unknown:
		m.Fail(errNotFound(v.id))
	default:
		v.deletionOrdered, v.reason, v.factor = phase == volume.Retained, volume.Purged, 1
		v.deletionFailed, v.deletionTries = nil, 0
		v.start(c, &operation{name: "delete", origin: m.Origin, run: (*task).delete, deletes: true,
			waiting: []messages.Reply[struct{}]{m.Reply}})
	}
}
