package actors

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/katbox/katbox/internal/volume"
)

// delete erases a retained volume. Each step can be the last before a crash:
// the record says Deleting until nothing is left, and what lies in the trash
// is erased at the next start in any case.
func (t *task) delete() error {
	if t.record == nil {
		return nil
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
	if t.trash == "" {
		name, err := t.scratch.Discard(t.record.Pod, t.id)
		if errors.Is(err, fs.ErrNotExist) {
			return t.deleted()
		}
		if err != nil {
			return t.deleteLater(err)
		}
		t.trash = name
	}
	if err := t.scratch.Erase(t.ctx, t.trash); err != nil {
		return t.deleteLater(err)
	}
	t.trash = ""
	return t.deleted()
}

func (t *task) deleted() error {
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
