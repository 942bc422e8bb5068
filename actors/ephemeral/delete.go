package ephemeral

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/scratch"
	"github.com/katbox/katbox/messages"
)

// delete ends a retained volume: one rename moves its data into the trash, then its record is removed, so
// that its ID is free. The disk actor erases the trash behind that, in this process or a later one.
func (t *task) delete() error {
	if t.record == nil {
		return nil
	}
	// A deletion cannot be taken back, so the mount table has the last word. It is that of the
	// daemon's mount namespace and does not show what is mounted in another one only.
	if err := t.mayDelete(); err != nil {
		return t.deleteLater(err)
	}
	recorded, err := t.recordDeletion()
	if err != nil {
		return t.deleteLater(err)
	}
	if err := t.in("move to the trash", func() error { return t.remove(recorded) }); err != nil {
		return t.deleteLater(err)
	}
	stone := t.tombstone(time.Now())
	if err := t.bury(stone); err != nil {
		return t.deleteLater(err)
	}
	t.Metrics.VolumeDeleted(stone, time.Since(stone.Record.Until()))
	t.afterlife.deleted(stone)
	return nil
}

// tombstone returns what is remembered of the volume.
func (t *task) tombstone(now time.Time) volume.Tombstone {
	stone := volume.Tombstone{
		Record: *t.record, Size: t.size, Reason: t.reason, By: t.by, Why: t.why,
		Gone: time.Unix(now.Unix(), 0), Kept: max(now.Sub(t.record.Unpublished), 0),
	}
	stone.Record.Targets, stone.Record.Owner.Seal = nil, ""
	switch {
	case t.reason == volume.ForReleased:
		stone.By, stone.Why = t.record.Hold.By, t.record.Hold.Why
	case t.reason == volume.Expired && stone.Kept < t.record.Keep():
		stone.Reason = volume.Interrupted
	case t.reason.Early():
		stone.Factor = t.factor
		// It is for people: where it cannot be measured, the deletion goes on without.
		if space, err := t.Space(); err == nil {
			stone.Free = space.Free
		}
	}
	return stone
}

// mayDelete confirms that the volume is mounted nowhere that the daemon sees, and that the directory of
// its pod is not mounted for a pod, as if that were a volume. A mount of the whole working directory
// prevents no deletion: a pod that only looks at retained volumes would stop all deletions on its node.
func (t *task) mayDelete() error {
	// No caller waits for an expiry, but calls wait for room, and a person for a removal.
	found, err := t.readMounts(t.reason == volume.Expired)
	if err != nil {
		return err
	}
	if places := found.volume(t.record.Place()); len(places) > 0 {
		return t.errStillMounted(places[0])
	}
	if place := found.pod(t.record.Pod, t.PodsDir); place != "" {
		return fmt.Errorf("%w: the directory of its pod is mounted at %s; unmount it", volume.ErrUncertain, place)
	}
	return nil
}

// recordDeletion makes durable that the volume is being deleted, and reports whether it did. Without
// room even for that the deletion goes on, because it is what makes room.
func (t *task) recordDeletion() (recorded bool, err error) {
	if t.record.Phase == volume.Deleting {
		return true, nil
	}
	next := *t.record
	next.Phase = volume.Deleting
	err = t.save(next)
	if volume.IsNoSpace(err) {
		t.Log.Info("deleting without a record of it, the disk is full", logkeys.About(*t.record, logkeys.Cause, err.Error())...)
		return false, nil
	}
	return err == nil, err
}

// remove moves the volume's data into the trash. Where the trash refuses it, it erases the data
// where it is; a crash in the middle of that leaves a part, so that needs a record.
func (t *task) remove(recorded bool) error {
	name, err := t.Scratch.DiscardAs(t.record.Place(), t.record.Project)
	switch {
	case err == nil:
		t.Quota.Discarded(t.record.Project)
		t.Root.Send(t.diskActor, &messages.Erase{Name: name, Volume: t.id})
		t.markDeleting()
		return t.Scratch.SyncTrash()
	case errors.Is(err, fs.ErrNotExist):
		// An earlier try may have moved it.
		t.markDeleting()
		return t.Scratch.SyncGone(t.record.Pod)
	case errors.Is(err, scratch.ErrTrashRefuses) && recorded:
		t.Log.Info("erasing a volume where it is, it cannot be moved to the trash", logkeys.About(*t.record, logkeys.Cause, err.Error())...)
		return t.eraseInPlace()
	}
	return err
}

// markDeleting notes that the data is gone, where no record says so.
func (t *task) markDeleting() {
	next := *t.record
	next.Phase = volume.Deleting
	t.setRecord(&next)
}

func (t *task) eraseInPlace() error {
	turn := t.turns.Take()
	defer turn.End()
	err := t.Scratch.EraseInPlace(t.ctx, t.record.Place(), turn.Next)
	if err == nil {
		t.Metrics.VolumeErased()
	}
	return err
}

// deleteLater names the volume in the reason why its deletion is tried again after a while. No
// caller waits for the error; the owner of the volumes logs it.
func (t *task) deleteLater(err error) error {
	return fmt.Errorf("delete volume %s of pod %s: %w", t.id, t.record.Pod, err)
}
