package mount

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
)

// errNoMountRoot says that statx(2) does not tell mount points here.
var errNoMountRoot = errors.New("statx does not report mount roots")

// IsMountPoint tells whether something is mounted at path, be it another file
// system or a directory of the same one. A symbolic link is not followed, so it
// is no mount point. The mount table is not read.
//
// The error wraps fs.ErrNotExist when there is nothing at path, and the
// kernel's (ESTALE, EIO, ENOTCONN) when what is mounted there does not answer.
func (m *Mounter) IsMountPoint(path string) (bool, error) {
	// A trailing slash would make the kernel follow a symbolic link after all.
	path = filepath.Clean(path)
	_, mounted, err := m.statx(path)
	if errors.Is(err, errNoMountRoot) {
		return hasOwnMount(path)
	}
	return mounted, err
}

// inode is what is at a path: its identity, and how many names it has.
type inode struct{ dev, ino, links uint64 }

// statx is mountRoot, which is asked only once on a kernel that does not know.
func (m *Mounter) statx(path string) (at inode, mounted bool, err error) {
	if m.noMountRoot.Load() {
		return inode{}, false, errNoMountRoot
	}
	at, mounted, err = mountRoot(path)
	if errors.Is(err, errNoMountRoot) {
		m.noMountRoot.Store(true)
	}
	return at, mounted, err
}

// mountRoot asks statx(2), which knows mount points since Linux 5.8, and tells in
// the same answer what is there.
func mountRoot(path string) (at inode, mounted bool, err error) {
	var st unix.Statx_t
	err = kernel.IgnoreEINTR(func() error {
		return unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS, &st)
	})
	switch {
	// System call filters that are older than statx say EPERM.
	case unsupported(err):
		return inode{}, false, errNoMountRoot
	case err != nil:
		return inode{}, false, wrap(err, "statx %s", path)
	case st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0:
		return inode{}, false, errNoMountRoot
	}
	at = inode{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino, links: uint64(st.Nlink)}
	return at, st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// hasOwnMount tells mount points on older kernels: a mount point is on another
// mount than the directory that it is in.
func hasOwnMount(path string) (bool, error) {
	if path == "/" {
		return true, nil
	}
	own, err := mountIDOf(path, unix.O_NOFOLLOW)
	if err != nil {
		return false, err
	}
	parent, err := mountIDOf(filepath.Dir(path), 0)
	if err != nil {
		return false, err
	}
	return own != parent, nil
}

func mountIDOf(path string, flags int) (uint64, error) {
	var fd int
	err := kernel.IgnoreEINTR(func() (err error) {
		fd, err = unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
		return err
	})
	if err != nil {
		return 0, wrap(err, "open %s", path)
	}
	defer unix.Close(fd)
	// An O_PATH handle asks nothing of the file system. Ask it for something,
	// so that a mount that does not answer is an error here too.
	var st unix.Stat_t
	if err := kernel.IgnoreEINTR(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return 0, wrap(err, "stat %s", path)
	}
	id, err := ID(fd)
	return id, wrap(err, "mount of %s", path)
}

// IsLikelyNotMountPoint is the opposite of [Mounter.IsMountPoint], and as
// certain. It returns true together with an error, as mount-utils does.
func (m *Mounter) IsLikelyNotMountPoint(path string) (bool, error) {
	mounted, err := m.IsMountPoint(path)
	return !mounted, err
}

// CanSafelySkipMountPointCheck is false: [Mounter.Unmount] of a path that is
// not a mount point is an error.
func (m *Mounter) CanSafelySkipMountPointCheck() bool { return false }
