package mount

import (
	"errors"
	"fmt"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
)

// EnsureOwn gives the directory dir a mount of its own: unless it is a mount
// point already, it is bound on itself, and that mount is made private. It
// tells whether it did so. dir may be reached through a symbolic link. On error
// nothing is left mounted, unless the error says so.
//
// The reason is the cost of later binds from below dir. For each of them the
// kernel looks at all mounts that are attached to the mount of the source, and a
// bind from a shared mount joins its peers, all of which every later mount
// below it has to visit. With thousands of volumes mounted, both would make
// each call cost thousands of steps; a private mount has no peers, and nothing
// is attached to this one.
func EnsureOwn(dir string) (made bool, err error) {
	// Mount table and messages speak of the resolved path; so does this.
	resolved, id, err := resolve(dir)
	if err != nil {
		return false, err
	}
	mounted, err := New().IsMountPoint(resolved)
	if err != nil {
		return false, err
	}
	if mounted {
		return false, makeOwnPrivate(resolved, id)
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

// makeOwnPrivate finishes what an [EnsureOwn] did that was cut off. A mount that
// somebody else made is left as it is.
func makeOwnPrivate(dir string, id uint64) error {
	table, err := readTable()
	if err != nil {
		return err
	}
	onItself, err := isBoundOnItself(table, dir, id)
	if err != nil || !onItself {
		return err
	}
	return makePrivate(dir)
}

func makePrivate(dir string) error {
	return wrap(kernel.Mount("", dir, "", unix.MS_PRIVATE, ""), "make the mount at %s private", dir)
}

// ReleaseOwn takes back what [EnsureOwn] did, now or in an earlier process: it
// unmounts dir if it is bound on itself, and does nothing if not. EBUSY says
// that somebody still works in there.
func ReleaseOwn(dir string) error {
	resolved, id, err := resolve(dir)
	if err != nil {
		return err
	}
	table, err := readTable()
	if err != nil {
		return err
	}
	onItself, err := isBoundOnItself(table, resolved, id)
	if err != nil || !onItself {
		return err
	}
	return New().Unmount(resolved)
}

// isBoundOnItself tells whether the mount with the given ID is one at dir that
// shows what would be there without it.
func isBoundOnItself(table []*mountinfo.Info, dir string, id uint64) (bool, error) {
	own, err := locate(table, dir, id)
	if err != nil || own.mount.Mountpoint != dir {
		return false, err
	}
	below, err := locate(table, dir, uint64(own.mount.Parent))
	if err != nil {
		return false, err
	}
	return below.sameFileSystem(own.mount) && below.root == own.root, nil
}
