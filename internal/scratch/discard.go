package scratch

import (
	"crypto/rand"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/volume"
)

// Discard moves a volume's data directory into the trash by one rename, and
// returns the name of the entry there for [Dir.Erase]. The pod's directory goes
// too if nothing else is in there.
//
// A power cut may undo it until [Dir.SyncTrash] has returned.
//
// The error wraps fs.ErrNotExist when there is no data directory; an empty
// directory of the pod goes all the same. It wraps ErrNotOurs when something
// else is in its place; a mount point is, so a data directory is never moved
// away with something mounted on it. It wraps ErrTrashRefuses when the trash does not
// take the directory; [Dir.EraseInPlace] works there. After an error nothing has been
// moved.
func (d *Dir) Discard(p volume.Place) (name string, err error) {
	podFD, err := d.openPod(p)
	if err != nil {
		return "", err
	}
	defer unix.Close(podFD)
	// It is opened to see what it is.
	fd, err := d.openChild(podFD, string(p.ID))
	if errors.Is(err, unix.ENOENT) {
		d.removePod(string(p.Pod))
	}
	if err != nil {
		return "", d.openError(p, err)
	}
	unix.Close(fd)
	name, err = d.moveToTrash(podFD, string(p.ID))
	if errors.Is(err, unix.ENOENT) {
		// Somebody has removed the trash, or the data directory just now.
		if err = d.remakeTrash(); err == nil {
			name, err = d.moveToTrash(podFD, string(p.ID))
		}
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		// It was there before, and where it is now is not known: this is not what
		// fs.ErrNotExist says.
		return "", fmt.Errorf("move %s to the trash: it has vanished meanwhile; try again", d.Path(p))
	case errors.Is(err, unix.EBUSY):
		// Mounted on since it was opened.
		return "", fmt.Errorf("move %s to the trash: %w", d.Path(p), notOurs(err))
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EXDEV), errors.Is(err, unix.EMLINK):
		return "", fmt.Errorf("move %s to the trash: %w: %w", d.Path(p), ErrTrashRefuses, err)
	case err != nil:
		return "", fmt.Errorf("move %s to the trash: %w", d.Path(p), err)
	}
	d.removePod(string(p.Pod))
	return name, nil
}

// SyncTrash makes durable what has been moved to the trash, by this process or an
// earlier one. File systems write renames in no order with what is written to
// files: without it, a data directory could be back after a power cut, and the
// record of it gone. Those who call it at the same time share a sync.
func (d *Dir) SyncTrash() error {
	err := d.trashSync.do(func() error { return kernel.Fsync(d.trashFD()) })
	if err != nil {
		return fmt.Errorf("sync the trash of %s: %w", d.root, err)
	}
	return nil
}

// SyncGone makes durable that a pod's volume is not there, whoever removed it and
// however.
func (d *Dir) SyncGone(pod volume.PodUID) error {
	if err := d.SyncTrash(); err != nil {
		return err
	}
	podFD, err := d.openChild(d.fd(), string(pod))
	switch {
	case err == nil:
		err = kernel.Fsync(podFD)
		unix.Close(podFD)
	case errors.Is(err, unix.ENOENT):
		// The directory's own removal was the last change; its sync covers the rest.
		err = kernel.Fsync(d.fd())
	}
	if err != nil {
		return fmt.Errorf("sync the pod's directory %s/%s: %w", d.root, pod, err)
	}
	return nil
}

// moveToTrash renames what name is in the directory at to a fresh name in the
// trash.
func (d *Dir) moveToTrash(at int, name string) (string, error) {
	fresh := freshName()
	return fresh, d.rename(at, name, d.trashFD(), fresh)
}

// freshName returns a name that nothing has: it has 128 random bits.
func freshName() string { return rand.Text() }

// rename moves what is at one place to another, where nothing may be. Flags and
// projects that a pod set do not prevent it.
func (d *Dir) rename(fromDir int, from string, toDir int, to string) error {
	rename := func() error { return d.renamePlain(fromDir, from, toDir, to) }
	err := rename()
	if errors.Is(err, unix.EXDEV) && takeAnyProject(toDir) {
		err = rename()
	}
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	released := d.release(fromDir, from)
	if clearFixed(toDir) || released {
		err = rename()
	}
	return err
}

func (d *Dir) renamePlain(fromDir int, from string, toDir int, to string) error {
	if !d.noRename2.Load() {
		err := kernel.RenameNoReplace(fromDir, from, toDir, to)
		// EINVAL comes from a file system that does not know the flag, EPERM
		// may come from a system call filter that does not know the call.
		if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			return err
		}
		if errors.Is(err, unix.ENOSYS) {
			d.noRename2.Store(true)
		}
	}
	// This one would replace an empty directory; that to is fresh prevents it.
	return kernel.Renameat(fromDir, from, toDir, to)
}
