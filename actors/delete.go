package actors

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/katbox/katbox/internal/volume"
)

// delete erases a retained volume. Each step can be the last before a crash:
// the record says Deleting until nothing is left, and what lies in the trash
// is erased at the next start in any case.
func (t *task) delete() error {
	if t.record == nil {
		return nil
	}
	if target, mounted := t.stillMounted(); mounted {
		return t.deleteLater(fmt.Errorf("its data directory is mounted at %s, though not by Katbox; unmount it", target))
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

// stillMounted looks where the kubelet has its pods' volumes for a mount of the
// data directory. There is none: the unmount was confirmed before the volume was
// retained. But a deletion cannot be taken back, and to look costs little.
func (t *task) stillMounted() (target string, mounted bool) {
	data, err := os.Lstat(t.scratch.Path(t.record.Pod, t.id))
	if err != nil {
		return "", false // nothing to delete, or told by what follows
	}
	volumes := filepath.Join(t.podsDir, string(t.record.Pod), "volumes", "kubernetes.io~csi")
	entries, err := os.ReadDir(volumes)
	if err != nil {
		return "", false // most often the pod's directory is gone
	}
	for _, entry := range entries {
		target := filepath.Join(volumes, entry.Name(), "mount")
		if info, err := os.Lstat(target); err == nil && os.SameFile(info, data) {
			return target, true
		}
	}
	return "", false
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
