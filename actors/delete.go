package actors

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/katbox/katbox/internal/volume"
)

// delete ends a retained volume: one rename takes its data into the trash, and
// then it is forgotten, so that its ID is free. What lies in the trash is
// erased behind that, by this process or a later one; see [volumeActor.erase].
func (t *task) delete() error {
	if t.record == nil {
		return nil
	}
	if err := t.notInUse(); err != nil {
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
		t.trash = append(t.trash, name)
	}
	pod := t.record.Pod
	if err := t.forget(); err != nil {
		return t.deleteLater(err)
	}
	t.log.V(1).Info("deleted", keyVolume, t.id, keyPod, pod)
	return nil
}

// notInUse refuses to delete what is mounted. Nothing is: the unmount was
// confirmed before the volume was retained. But a deletion cannot be taken back,
// and where the kubelet still has a directory of the pod it is worth a look at
// the mount table. Most pods' are gone by then, so it is not read for each.
func (t *task) notInUse() error {
	if _, err := os.Lstat(filepath.Join(t.podsDir, string(t.record.Pod))); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	places, err := t.mountedAt(t.record.Pod, t.id)
	if err != nil {
		return err
	}
	if len(places) > 0 {
		return fmt.Errorf("it is mounted at %q, though not by Katbox; unmount it", places)
	}
	return nil
}

// deleteLater has the deletion resumed after a while. Nobody waits for the
// error; it is logged by whoever is told that the volume is stuck.
func (t *task) deleteLater(err error) error {
	t.stuck = fmt.Errorf("delete volume %s of pod %s: %w", t.id, t.record.Pod, err)
	return t.stuck
}
