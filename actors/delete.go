package actors

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/katbox/katbox/internal/volume"
)

// delete ends a retained volume: one rename takes its data into the trash, and
// then it is forgotten, so that its ID is free. What lies in the trash is
// erased behind that, by this process or a later one; see [volumeActor.erase].
func (t *task) delete() error {
	if t.record == nil {
		return nil
	}
	// A deletion cannot be taken back, so whatever led to it, the mount table has
	// the last word.
	if err := t.nowhere(); err != nil {
		return t.deleteLater(err)
	}
	if t.record.Phase != volume.Deleting {
		next := *t.record
		next.Phase = volume.Deleting
		err := t.save(next)
		if noSpace(err) {
			// Deletion is what makes room. The move to the trash is durable too.
			t.log.Info("deleting without a record of it, the disk is full", keyVolume, t.id, "cause", err.Error())
			t.record = &next
		} else if err != nil {
			return t.deleteLater(err)
		}
	}
	name, err := t.scratch.Discard(t.record.Pod, t.id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return t.deleteLater(err)
	}
	if err == nil {
		t.discarded = append(t.discarded, name)
	}
	pod := t.record.Pod
	if err := t.forget(); err != nil {
		return t.deleteLater(err)
	}
	t.log.V(1).Info("deleted", keyVolume, t.id, keyPod, pod)
	return nil
}

// deleteLater has the deletion resumed after a while. Nobody waits for the
// error; it is logged by whoever is told that the volume is stuck.
func (t *task) deleteLater(err error) error {
	t.stuck = fmt.Errorf("delete volume %s of pod %s: %w", t.id, t.record.Pod, err)
	return t.stuck
}
