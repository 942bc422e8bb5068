package scratch

import (
	"cmp"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// dataMode lets any user of a pod write: the pod's user is not known here.
	dataMode = 0o777
	// anyMode are the bits that Making.Mode may have.
	anyMode = unix.S_ISVTX | 0o777
	// unfinishedMode, an odd one, shows that a crash came between mkdir and chmod.
	unfinishedMode = unix.S_ISVTX | unix.S_IRUSR
	// createTries bounds how often Create begins again because the pod's directory went away under
	// it.
	createTries = 100
)

// Making says how a data directory is made. The zero Making makes one that all users may write to.
type Making struct {
	// Mode are the permissions and the sticky bit, whatever the umask is; 0 for 0777.
	Mode uint32
	// Prepare is called with the open directory before others than root can write to it; nil for
	// nothing to do. It is called again if a crash came before the permissions. With its error the
	// directory is not made.
	Prepare func(fd int) error
}

// Create is CreateAs for a directory that all users may write to.
func (d *Dir) Create(p volume.Place) (created bool, err error) { return d.CreateAs(p, Making{}) }

// CreateAs makes a volume's data directory. created reports whether it did: a directory that exists
// stays as it is. The error wraps ErrNotOurs when something else is there, and ENOSPC or EDQUOT when
// the file system is full.
func (d *Dir) CreateAs(p volume.Place, as Making) (created bool, err error) {
	if err := check(p); err != nil {
		return false, err
	}
	if as.Mode&^anyMode != 0 {
		return false, fmt.Errorf("create %s: mode %#o has more than permissions and the sticky bit", d.Path(p), as.Mode)
	}
	// Deleting another volume of the pod also removes the pod's directory while that is empty.
	for range createTries {
		created, err = d.create(string(p.Pod), string(p.ID), as)
		if !errors.Is(err, unix.ENOENT) {
			break
		}
	}
	if err != nil {
		return false, fmt.Errorf("create %s: %w", d.Path(p), err)
	}
	return created, nil
}

func (d *Dir) create(podName, idName string, as Making) (created bool, err error) {
	podFD, err := d.makePod(podName)
	if err != nil {
		return false, fmt.Errorf("directory of the pod: %w", err)
	}
	defer unix.Close(podFD)

	err = kernel.Mkdirat(podFD, idName, unfinishedMode)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		d.removePod(podName)
		return false, fmt.Errorf("mkdir: %w", err)
	}
	created = err == nil
	finished, err := d.finish(podFD, idName, created, as)
	if err != nil && created {
		err = errors.Join(err, d.removeDirectory(podFD, idName))
		d.removePod(podName)
	}
	return finished, err
}

// makePod makes the pod's directory if it does not exist, and opens it.
func (d *Dir) makePod(podName string) (int, error) {
	err := kernel.Mkdirat(d.fd(), podName, podMode)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, fmt.Errorf("mkdir: %w", err)
	}
	made := err == nil
	podFD, err := d.opener.Directory(d.fd(), podName)
	if err != nil {
		return -1, fmt.Errorf("open: %w", notOurs(err))
	}
	if made {
		if err := kernel.Fchmod(podFD, podMode); err != nil {
			unix.Close(podFD)
			d.removePod(podName)
			return -1, fmt.Errorf("chmod: %w", err)
		}
	}
	return podFD, nil
}

// finish sets the permissions of a data directory that is new or that a crash left without them,
// and reports whether it did.
func (d *Dir) finish(podFD int, idName string, isNew bool, as Making) (finished bool, err error) {
	fd, err := d.opener.Directory(podFD, idName)
	if err != nil {
		return false, fmt.Errorf("open: %w", notOurs(err))
	}
	defer unix.Close(fd)
	if !isNew {
		st, err := kernel.Fstat(fd)
		if err != nil {
			return false, fmt.Errorf("stat: %w", err)
		}
		// A new directory below setgid directories is setgid too.
		if st.Mode&0o7777&^unix.S_ISGID != unfinishedMode {
			return false, nil
		}
	}
	if as.Prepare != nil {
		if err := as.Prepare(fd); err != nil {
			return false, err
		}
	}
	if err := kernel.Fchmod(fd, cmp.Or(as.Mode, dataMode)); err != nil {
		return false, fmt.Errorf("chmod: %w", err)
	}
	return true, nil
}

// Exists reports whether a volume has a data directory. ErrNotOurs means that something else is in
// its place.
func (d *Dir) Exists(p volume.Place) (bool, error) {
	podFD, err := d.openParent(p)
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case err != nil:
		return false, err
	}
	unix.Close(podFD)
	return true, nil
}

// openParent opens the pod's directory of a volume that has a data directory. The error is ENOENT
// when it has none, and ErrNotOurs when something else is in its place.
func (d *Dir) openParent(p volume.Place) (podFD int, err error) {
	podFD, err = d.openPod(p)
	if err != nil {
		return -1, err
	}
	fd, err := d.opener.Directory(podFD, string(p.ID))
	if err != nil {
		unix.Close(podFD)
		return -1, d.openError(p, err)
	}
	unix.Close(fd)
	return podFD, nil
}

// openError is the error of opening a volume's data directory.
func (d *Dir) openError(p volume.Place, err error) error {
	return fmt.Errorf("open %s: %w", d.Path(p), notOurs(err))
}

// openPod opens the pod's directory of a volume.
func (d *Dir) openPod(p volume.Place) (int, error) {
	if err := check(p); err != nil {
		return -1, err
	}
	podFD, err := d.opener.Directory(d.fd(), string(p.Pod))
	if err != nil {
		return -1, fmt.Errorf("open the pod's directory of %s: %w", d.Path(p), notOurs(err))
	}
	return podFD, nil
}

// RemoveEmpty undoes a Create: it removes the empty data directory, and the pod's directory if that
// is empty then. ENOTEMPTY means that there is data, which stays. A missing directory is no error.
func (d *Dir) RemoveEmpty(p volume.Place) error {
	podFD, err := d.openPod(p)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(podFD)
	if err := d.removeDirectory(podFD, string(p.ID)); err != nil {
		return fmt.Errorf("remove %s: %w", d.Path(p), notOurs(err))
	}
	d.removePod(string(p.Pod))
	return nil
}

// removeDirectory removes an empty directory, if it exists.
func (d *Dir) removeDirectory(at int, name string) error {
	err := kernel.Rmdirat(at, name)
	if errors.Is(err, unix.EPERM) && d.release(at, name) {
		err = kernel.Rmdirat(at, name)
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EEXIST):
		// POSIX allows both, and some file systems return this one.
		return unix.ENOTEMPTY
	}
	return err
}

// removePod removes the directory of a pod if it is empty. An empty directory that stays does no
// harm.
func (d *Dir) removePod(podName string) {
	_ = d.removeDirectory(d.fd(), podName)
}
