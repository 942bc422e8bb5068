package mount

import (
	"errors"
	"fmt"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// EnsureOwn gives the directory dir a mount of its own: unless it is a mount point already,
// EnsureOwn binds it on itself and makes that mount private. made reports whether it did. On error
// nothing is left mounted, unless the error says so.
//
// It keeps later binds from below dir cheap. For each bind the kernel looks at all mounts that are
// attached to the mount of the source, and at all its peers if that is shared: thousands with
// thousands of volumes. A private mount has no peers, and nothing is attached to this one.
func EnsureOwn(dir string) (made bool, err error) {
	resolved, _, err := resolve(dir)
	if err != nil {
		return false, err
	}
	mounted, err := New().IsMountPoint(resolved)
	if err != nil {
		return false, err
	}
	if mounted {
		// It may be the mount of an EnsureOwn that a crash cut off. A mount that others made stays
		// as it is.
		if _, onItself, err := findOwn(dir); err != nil || !onItself {
			return false, err
		}
		return false, makePrivate(resolved)
	}
	fd, err := openDirectory(resolved)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	if err := kernel.Mount(handlePath(fd), handlePath(fd), "", unix.MS_BIND, ""); err != nil {
		return false, fmt.Errorf("bind %s on itself: %w", dir, err)
	}
	if err := makePrivate(resolved); err != nil {
		return false, errors.Join(err, New().Unmount(resolved))
	}
	return true, nil
}

func makePrivate(dir string) error {
	return wrap(kernel.Mount("", dir, "", unix.MS_PRIVATE, ""), "make the mount at %s private", dir)
}

// ReleaseOwn takes back what [EnsureOwn] did, now or in an earlier process: it unmounts dir if it
// is bound on itself, and does nothing if not. EBUSY says that a process still uses it.
func ReleaseOwn(dir string) error {
	resolved, onItself, err := findOwn(dir)
	if err != nil || !onItself {
		return err
	}
	return New().Unmount(resolved)
}

// findOwn resolves dir and reports whether it is bound on itself.
func findOwn(dir string) (resolved string, onItself bool, err error) {
	table, own, err := lookUp(dir)
	if err != nil {
		return "", false, err
	}
	onItself, err = isBoundOnItself(table, own.path, uint64(own.mount.ID))
	return own.path, onItself, err
}

// isBoundOnItself reports whether the mount with the given ID is at dir and shows the directory that
// would be there without it.
func isBoundOnItself(table []*mountinfo.Info, dir string, id uint64) (bool, error) {
	own, err := locate(table, dir, id)
	if err != nil || own.mount.Mountpoint != dir {
		return false, err
	}
	below, err := locate(table, dir, uint64(own.mount.Parent))
	return err == nil && below.sameFileSystem(own.mount) && below.root == own.root, err
}
