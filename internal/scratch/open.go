package scratch

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/mount"
)

// openFlags open nothing but a directory: a FIFO could block for ever, a device could do anything.
const openFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// openChild opens the directory name in the directory at. name is one path element. The error is
// EXDEV when something is mounted there, and ENOTDIR when it is no directory; a symbolic link is
// none.
func (d *Dir) openChild(at int, name string) (int, error) {
	return d.openUnmounted(at, name, openFlags)
}

// openUnnoticed is openChild, except that reading the directory does not update its access time, if
// the process has the privileges.
func (d *Dir) openUnnoticed(at int, name string) (int, error) {
	fd, err := d.openUnmounted(at, name, openFlags|unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) {
		return d.openChild(at, name)
	}
	return fd, err
}

// openUnmounted is openChild with other flags, among them O_NOFOLLOW.
func (d *Dir) openUnmounted(at int, name string, flags int) (int, error) {
	if !d.noOpenat2.Load() {
		fd, err := openat2(at, name, flags)
		// System call filters that are older than openat2 return EPERM; the call itself returns it
		// with O_NOATIME only.
		filtered := errors.Is(err, unix.EPERM) && flags&unix.O_NOATIME == 0
		if !errors.Is(err, unix.ENOSYS) && !filtered {
			return fd, err
		}
		d.noOpenat2.Store(true)
	}
	return d.openCompared(at, name, flags)
}

// mountedOn tells whether something is mounted on name in the directory at.
func (d *Dir) mountedOn(at int, name string) bool {
	fd, err := d.openUnmounted(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return errors.Is(err, unix.EXDEV)
}

// openat2 makes the kernel refuse mount points and symbolic links. It needs Linux 5.6.
func openat2(at int, name string, flags int) (fd int, err error) {
	err = kernel.IgnoreEINTR(func() error {
		fd, err = unix.Openat2(at, name, &unix.OpenHow{
			Flags:   uint64(flags),
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
		})
		return err
	})
	if errors.Is(err, unix.ELOOP) {
		err = unix.ENOTDIR
	}
	return fd, err
}

// openCompared does what openat2 does on older kernels. It compares an O_PATH handle first: opening
// the root of a FUSE file system may hang.
func (d *Dir) openCompared(at int, name string, flags int) (int, error) {
	fd, err := d.openAndCompare(at, name, flags|unix.O_PATH)
	if err != nil || flags&unix.O_PATH != 0 {
		return fd, err
	}
	unix.Close(fd)
	return d.openAndCompare(at, name, flags)
}

// openAndCompare opens name, which has to be on the mount of the working directory.
func (d *Dir) openAndCompare(at int, name string, flags int) (fd int, err error) {
	fd, err = kernel.Openat(at, name, flags)
	if errors.Is(err, unix.ELOOP) {
		err = unix.ENOTDIR
	}
	if err != nil {
		return -1, err
	}
	id, err := mount.ID(fd)
	if err == nil && id != d.mountID {
		err = unix.EXDEV
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// openAbove opens the directory above an open one. It checks that the way down led through it: a
// pod may have moved the lower one.
func (d *Dir) openAbove(fd int, above inode) (int, error) {
	up, err := d.openAndCompare(fd, "..", openFlags)
	if err != nil {
		return -1, fmt.Errorf("open ..: %w", mountInside(err))
	}
	id, err := identify(up)
	if err == nil && id != above {
		err = errMoved
	}
	if err != nil {
		unix.Close(up)
		return -1, err
	}
	return up, nil
}

// inode identifies a file.
type inode struct{ dev, ino uint64 }

func identify(fd int) (inode, error) {
	st, err := kernel.Fstat(fd)
	if err != nil {
		return inode{}, fmt.Errorf("stat: %w", err)
	}
	return inode{st.Dev, st.Ino}, nil
}

// mountInside wraps errors of openChild, and those of removing, in [ErrMountInside] if they come
// from a mount point.
func mountInside(err error) error {
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("%w: %w", ErrMountInside, err)
	}
	return err
}

// reopen returns another handle of an open directory, with a position of its own at the start.
func reopen(fd int) (int, error) { return kernel.Openat(fd, ".", openFlags) }

// notOurs wraps errors of openChild, and those of removing or moving a directory, in [ErrNotOurs]
// if they say that a name is no plain directory of ours.
func notOurs(err error) error {
	switch {
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w: a mount point: %w", ErrNotOurs, err)
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%w: %w", ErrNotOurs, err)
	}
	return err
}
