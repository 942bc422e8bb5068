package scratch

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/mount"
)

// openFlags open a directory for reading, and nothing but a directory: a FIFO
// could block for ever, a device could do anything.
const openFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// openChild opens the directory name in the directory at. name is one path
// element. The error is
//
//   - EXDEV when something is mounted there,
//   - ENOTDIR when it is no directory, a symbolic link being none either.
func (d *Dir) openChild(at int, name string) (int, error) {
	return d.openUnmounted(at, name, openFlags)
}

// openUnnoticed is openChild, and to read the directory does not change its time of
// access: to note that would be a write for each directory. It takes privileges,
// which the daemon has; without them the time is noted.
func (d *Dir) openUnnoticed(at int, name string) (int, error) {
	fd, err := d.openUnmounted(at, name, openFlags|unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) {
		return d.openChild(at, name)
	}
	return fd, err
}

// openUnmounted opens name in the directory at with flags, among them
// O_NOFOLLOW. The errors are those of openChild.
func (d *Dir) openUnmounted(at int, name string, flags int) (int, error) {
	if !d.noOpenat2.Load() {
		fd, err := openat2(at, name, flags)
		// System call filters that are older than openat2 say EPERM; the call
		// itself does with O_NOATIME only.
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

// openat2 has the kernel refuse all that openUnmounted does not want. Linux 5.6.
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

// openCompared does what openat2 does on older kernels. That nothing is mounted
// there shows in the mount being the one that the working directory is on. It looks
// before it opens: to open what is mounted there may hang with a FUSE file system.
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
	err = kernel.IgnoreEINTR(func() error {
		fd, err = unix.Openat(at, name, flags, 0)
		return err
	})
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

// reopen returns another handle of an open directory. It reads the directory
// from the start, whatever else is reading it.
func reopen(fd int) (again int, err error) {
	err = kernel.IgnoreEINTR(func() error {
		again, err = unix.Openat(fd, ".", openFlags, 0)
		return err
	})
	return again, err
}

// notOurs turns errors of openChild, and those of removing or moving a directory,
// into [ErrNotOurs] if they say that a name is no plain directory of ours. The
// kernel's error stays in there.
func notOurs(err error) error {
	switch {
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w: a mount point: %w", ErrNotOurs, err)
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%w: %w", ErrNotOurs, err)
	}
	return err
}

// names reads the names in an open directory, a batch at a time.
type names struct {
	fd int
	// buf may be shared by readers that take turns: a batch does not refer to it.
	buf []byte
}

// newBuffer returns a buffer for names. Its size bounds a batch: some hundred
// names, or some sixty of the longest.
func newBuffer() []byte { return make([]byte, 16<<10) }

// buffers are for names: who looks through one volume looks through many, and most
// of them are small. The garbage collector takes what is left over.
var buffers = sync.Pool{New: func() any { buf := newBuffer(); return &buf }}

// next returns the next names, without . and .., and none at the end.
func (n *names) next() ([]string, error) {
	for {
		size, err := getdents(n.fd, n.buf)
		if err != nil || size <= 0 {
			return nil, err
		}
		_, _, batch := unix.ParseDirent(n.buf[:size], -1, nil)
		// A batch may be of nothing but . and .. and yet not be the last.
		if len(batch) > 0 {
			return batch, nil
		}
	}
}
