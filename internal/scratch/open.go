package scratch

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/mount"
)

// openFlags open a directory for reading, and nothing but a directory: a FIFO could block for ever,
// a device could do anything.
const openFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// openChild opens the directory name in the directory at. name is one path element. The error is
//
//   - EXDEV when something is mounted there,
//   - ENOTDIR when it is no directory; a symbolic link is none.
func (d *Dir) openChild(at int, name string) (int, error) {
	return d.openUnmounted(at, name, openFlags)
}

// openUnnoticed is openChild, except that reading the directory does not update its access time,
// which would be a write for each directory. That takes privileges, which the daemon has; without
// them the time is updated.
func (d *Dir) openUnnoticed(at int, name string) (int, error) {
	fd, err := d.openUnmounted(at, name, openFlags|unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) {
		return d.openChild(at, name)
	}
	return fd, err
}

// openUnmounted opens name in the directory at with flags, among them O_NOFOLLOW. The errors are
// those of openChild.
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

// openCompared does what openat2 does on older kernels. Nothing is mounted there if the mount is
// the one that the working directory is on. It compares an O_PATH handle first: opening the root of
// a FUSE file system may hang.
func (d *Dir) openCompared(at int, name string, flags int) (int, error) {
	const look = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if flags&unix.O_PATH == 0 {
		fd, err := d.openAndCompare(at, name, unix.O_PATH|flags&look)
		if err != nil {
			return -1, err
		}
		unix.Close(fd)
	}
	return d.openAndCompare(at, name, flags)
}

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
