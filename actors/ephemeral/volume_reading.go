package ephemeral

import (
	"github.com/katbox/katbox/internal/model/volume"
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
	m.Send(v.description(record, volume.Size{}, factor), nil)
}
