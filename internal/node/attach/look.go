package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/node/mount"
)

// Point is what is at a path; the zero one is nothing.
type Point struct {
	// Mounted: something is mounted there.
	Mounted bool
	// Directory: a directory is there.
	Directory bool
	// Device is the number of the file system's device. Node is that of the block device whose node is there, 0
	// for anything else; Gone: the disk is gone, and its node was removed.
	Device, Node uint64
	Gone         bool
}

// Look tells what is at a path, without a reading of the mount table: with thousands of mounts that costs more than
// all else. Like [Table], it asks no file system, and so does not hang while a server is away.
func Look(path string) (Point, error) {
	p, err := mount.LookCached(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Point{}, nil
	}
	return pointOf(p), err
}

// NoSymlinks returns an error if the path of a mount to be made leads through a symbolic link: the mount table would show
// the mount elsewhere, and an unmount by this path would find nothing. A path that does not exist is no error. What is
// mounted at the path itself does not matter.
func NoSymlinks(path string) error {
	dir := filepath.Dir(filepath.Clean(path))
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, dir, how)
	for errors.Is(err, unix.EINTR) {
		fd, err = unix.Openat2(unix.AT_FDCWD, dir, how)
	}
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.ELOOP):
		return errSymlink(path)
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // before Linux 5.6, or refused by a filter
		return noSymlinksBefore(path, dir)
	}
	return nil
}

// noSymlinksBefore does what NoSymlinks does on kernels without openat2(2).
func noSymlinksBefore(path, dir string) error {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil && resolved != dir {
		return errSymlink(path)
	}
	return nil
}

func errSymlink(path string) error {
	return fmt.Errorf("%w: %s leads through a symbolic link, where a mount is not found again: "+
		"let --kubelet-dir and the kubelet's own directory be real paths", ErrNotOurs, path)
}

// LookOpen is Look for an open file or directory.
func LookOpen(fd int) (Point, error) {
	p, err := mount.LookOpen(fd)
	return pointOf(p), err
}

func pointOf(p mount.Point) Point {
	at := Point{Mounted: p.Mounted, Directory: p.Mode&unix.S_IFMT == unix.S_IFDIR, Device: p.Device}
	if p.Mode&unix.S_IFMT == unix.S_IFBLK {
		at.Node, at.Gone = p.Node, p.Removed
	}
	return at
}
