package ephemeral

import (
	"context"
	"fmt"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// Purge deletes a retained volume now, for good: no grace, and no way back. It returns when that is
// recorded and the data is in the trash. by is who asks; why, the reason, may be empty.
//
// The error is
//   - a [volume.ErrInvalid] that names the field, if by is missing or a text cannot be recorded,
//   - a [volume.ErrNotFound] when the volume is not known, which it is not after its deletion,
//   - a [volume.ErrNotRetained] when a pod uses the volume or is about to,
//   - a [volume.ErrUncertain] when it is mounted elsewhere: then nothing has changed,
//   - a [volume.ErrUnavailable] when too many volumes are being deleted, or the daemon stops,
//   - or why the deletion failed. One that failed after it was recorded is tried again.
//
// A volume that is being deleted already is waited for.
func (n *Node) Purge(ctx context.Context, id volume.ID, by, why string) error {
	m := &messages.PurgeVolume{Routing: n.routing(ctx, id), By: by, Why: why}
	return n.decide(ctx, act{verb: "purge", id: id, by: by, why: why}, func() error {
		if err := checkTexts(by, why); err != nil {
			return err
		}
		return n.Change(ctx, m)
	})
}

// purge orders the deletion of a volume that rests. The actor of any other one says why it is not deleted.
func (v *volumes) purge(m *messages.PurgeVolume) (done bool) {
	known, rests := v.look(m.ID)
	switch {
	case v.ctx.Err() != nil:
		m.Fail(actors.ErrStopping)
	case !rests && !v.supervisor.IsAwake(m.ID):
		m.Fail(errNotFound(m.ID))
	case !rests:
		return false
	case v.retention.attached.holds(m.ID):
		m.Fail(fmt.Errorf("%w: a pod has volume %s attached; it can be purged when that pod has ended", volume.ErrNotRetained, m.ID))
	case len(v.retention.deleting) >= v.retention.atOnce:
		m.Fail(fmt.Errorf("%w: as many volumes as may be are being deleted already; try again", volume.ErrUnavailable))
	default:
		v.leases.lose(m.ID, errDeleted(m.ID, volume.Purged))
		v.pins.drop(m.ID)
		v.retention.begin(m.ID, false)
		v.retention.changed()
		if v.supervisor.IsAwake(m.ID) {
			return false
		}
		v.supervisor.Wake(m.ID, resting{record: &known.Record, size: known.Size}, m)
	}
	return true
}

// purge returns the operation that deletes the volume for a person, if it is retained.
func (v *subject) purge(m *messages.PurgeVolume) *actors.Operation {
	switch phase := volume.PhaseOf(v.record); {
	case phase.Live():
		m.Fail(errInUse(v.id))
	case phase == volume.Unknown:
		m.Fail(errNotFound(v.id))
	default:
		v.deletionOrdered = phase == volume.Retained
		v.deletion = deletion{reason: volume.Purged, factor: 1, by: m.By, why: m.Why}
		v.deletionFailed, v.deletionTries = nil, 0
		return v.delete(m.Origin)
	}
	return nil
}
