package beneath

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/node/mount"
)

const (
	// DirectoryFlags open nothing but a directory: a FIFO could block for ever, a device could do
	// anything.
	DirectoryFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	// lookFlags return a handle that stands for a file. They do not open the file itself.
	lookFlags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
)

// Opener opens names on one mount. Its methods may be called from several goroutines.
type Opener struct {
	mountID uint64
	// NoOpenat2 says that the kernel lacks openat2(2) or a filter refuses it. Tests set it.
	NoOpenat2 atomic.Bool
}

// New returns an Opener of names on the mount of the open directory dir.
func New(dir int) (*Opener, error) {
	id, err := mount.ID(dir)
	if err != nil {
		return nil, err
	}
	return &Opener{mountID: id}, nil
}

// MountID is the ID of the mount, as in [mount.ID].
func (o *Opener) MountID() uint64 { return o.mountID }

// Directory opens the directory name in the directory at. The error is EXDEV when something is
// mounted there, and ENOTDIR when it is no directory; a symbolic link is none.
func (o *Opener) Directory(at int, name string) (int, error) {
	return o.Open(at, name, DirectoryFlags)
}

// Unnoticed is Directory, except that reading the directory does not update its access time, if the
// process has the privileges.
func (o *Opener) Unnoticed(at int, name string) (int, error) {
	fd, err := o.Open(at, name, DirectoryFlags|unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) {
		return o.Directory(at, name)
	}
	return fd, err
}

// Look returns a handle that stands for what name in the directory at is, of any type: for a
// symbolic link, the link itself. It opens nothing, so it blocks on no FIFO and wakes no device. The
// error is EXDEV when something is mounted there.
func (o *Opener) Look(at int, name string) (int, error) {
	return o.Open(at, name, lookFlags)
}

// MountedOn reports whether something is mounted on name in the directory at.
func (o *Opener) MountedOn(at int, name string) bool {
	fd, err := o.Look(at, name)
	if err == nil {
		unix.Close(fd)
	}
	return errors.Is(err, unix.EXDEV)
}

// Open is Directory with other flags, among them O_NOFOLLOW.
func (o *Opener) Open(at int, name string, flags int) (int, error) {
	if !o.NoOpenat2.Load() {
		fd, err := openat2Again(at, name, flags)
		// System call filters that are older than openat2 return EPERM; the call itself returns it
		// with O_NOATIME only.
		filtered := errors.Is(err, unix.EPERM) && flags&unix.O_NOATIME == 0
		if !errors.Is(err, unix.ENOSYS) && !filtered {
			return fd, err
		}
		o.NoOpenat2.Store(true)
	}
	return o.openCompared(at, name, flags)
}

// UnnoticedPath is Unnoticed for a path of several elements, in one system call. The error is
// ENOSYS where that does not work; then open each element.
func (o *Opener) UnnoticedPath(at int, path string) (int, error) {
	if o.NoOpenat2.Load() {
		return -1, unix.ENOSYS
	}
	fd, err := openat2Again(at, path, DirectoryFlags|unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) {
		err = unix.ENOSYS
	}
	return fd, err
}

// movedTries is how often a name is tried that openat2 takes for a mount point. While a process kept
// moving it to and fro, two calls of 10,000 were wrong, and never two in a row.
const movedTries = 4

// openat2Again is openat2, except that EXDEV means a mount point: openat2 also returns it for a
// directory that is moved out of at during the call, and EAGAIN when it cannot tell.
func openat2Again(at int, name string, flags int) (fd int, err error) {
	for range movedTries {
		fd, err = openat2(at, name, flags)
		if !errors.Is(err, unix.EXDEV) && !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return fd, err
}

// openat2 makes the kernel refuse mount points and symbolic links. It needs Linux 5.6.
func openat2(at int, name string, flags int) (fd int, err error) {
	err = kernel.IgnoreEINTR(func() error {
		fd, err = unix.Openat2(at, name, &unix.OpenHow{
			Flags:   uint64(flags),
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
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
func (o *Opener) openCompared(at int, name string, flags int) (int, error) {
	fd, err := o.openAndCompare(at, name, flags|unix.O_PATH)
	if err != nil || flags&unix.O_PATH != 0 {
		return fd, err
	}
	unix.Close(fd)
	return o.openAndCompare(at, name, flags)
}

// openAndCompare opens name, which has to be on the mount.
func (o *Opener) openAndCompare(at int, name string, flags int) (fd int, err error) {
	fd, err = kernel.Openat(at, name, flags)
	if errors.Is(err, unix.ELOOP) {
		err = unix.ENOTDIR
	}
	if err != nil {
		return -1, err
	}
	id, err := mount.ID(fd)
	if err == nil && id != o.mountID {
		err = unix.EXDEV
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// ErrMoved: on the way back up from a directory there is another directory than on the way down.
var ErrMoved = errors.New("directories were moved meanwhile")

// Above opens the directory above an open one. It checks that the way down led through it: a pod
// may have moved the lower one, and the error wraps [ErrMoved] then.
func (o *Opener) Above(fd int, above ID) (int, error) {
	up, err := o.openAndCompare(fd, "..", DirectoryFlags)
	if err != nil {
		return -1, fmt.Errorf("open ..: %w", err)
	}
	id, err := Identify(up)
	if err == nil && id != above {
		err = ErrMoved
	}
	if err != nil {
		unix.Close(up)
		return -1, err
	}
	return up, nil
}

// Reopen returns another handle of an open directory, with a position of its own at the start. The
// directory may be open with O_PATH.
func Reopen(fd int) (int, error) { return kernel.Openat(fd, ".", DirectoryFlags) }

// ReopenUnnoticed is Reopen, except that reading the directory does not update its access time, if
// the process has the privileges.
func ReopenUnnoticed(fd int) (int, error) {
	again, err := kernel.Openat(fd, ".", DirectoryFlags|unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) {
		return Reopen(fd)
	}
	return again, err
}

// ID identifies a file.
type ID struct{ Dev, Ino uint64 }

// Identify returns the ID of an open file.
func Identify(fd int) (ID, error) {
	st, err := kernel.Fstat(fd)
	if err != nil {
		return ID{}, fmt.Errorf("stat: %w", err)
	}
	return ID{st.Dev, st.Ino}, nil
}
