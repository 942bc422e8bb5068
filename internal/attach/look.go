package attach

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/mount"
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
