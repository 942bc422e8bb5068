// Package scratch makes, finds, measures and deletes the data directories in the working directory:
// <working directory>/<pod UID>/<volume ID>.
//
// Pods write the data directories, so their content may be hostile. The package never leaves the
// working directory: every system call names one path element relative to an open directory,
// follows no symbolic link, and enters no mount, not even a bind mount of the same file system.
//
// A deletion has two steps. [Dir.Discard] moves the data directory into the trash, <working
// directory>/.trash, by one rename, so that a volume is either wholly there or wholly gone;
// [Dir.SyncTrash] makes that durable. [Dir.Erase] then frees the space; what an interrupted Erase
// leaves stays in the trash ([Dir.TrashPage]). Where the trash does not take a data directory,
// [Dir.EraseInPlace] erases it where it is.
//
// Some flags make the kernel refuse a removal even to root (chattr +i and +a, a read-only subvolume
// of btrfs); the package clears them then. It cannot remove mount points, a swap file in use, the
// default subvolume, and directories that a process keeps filling or moving; the error says where
// they are. It opens nothing but directories, and regular files that have such a flag.
//
// Before Discard the caller makes sure that the data directory is mounted nowhere. Operations on
// different volumes may run at the same time. The caller serialises those on one volume and those
// on one trash entry.
package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/node/mount"
)

var (
	// ErrMountInside: something is mounted inside what was to be erased. It stays, with all that it
	// covers and the directories above it; the error says where it is.
	ErrMountInside = errors.New("something is mounted inside")
	// ErrNotOurs: in place of a data directory is something that this package did not make: a
	// symbolic link, a file or a mount point. Nothing was changed.
	ErrNotOurs = errors.New("not a data directory")
	// ErrTrashRefuses: the file system does not let a data directory be moved into the trash. It
	// has no room for one more name (ENOSPC, EDQUOT), the trash has as many directories as it can
	// hold (EMLINK: 65,000 on ext4 without dir_nlink), or the two do not go together (EXDEV: their
	// projects, an overlay). Nothing was changed.
	ErrTrashRefuses = errors.New("the trash does not take it")
	// ErrCovered: the path of the working directory leads to another directory than the one that
	// the Dir works on, or nowhere.
	ErrCovered = errors.New("it is not the directory any more that the daemon works on")
)

const (
	// trashName is where discarded data waits to be erased. volume.ParsePodUID refuses names that
	// begin with a dot, so no pod can have it.
	trashName = ".trash"

	rootMode  = 0o750
	podMode   = 0o750
	trashMode = 0o700
)

// Dir is an open working directory. Its methods may be called from several goroutines.
type Dir struct {
	root  string
	dir   *os.File
	trash atomic.Pointer[os.File]
	mu    sync.Mutex
	// lost are former trashes, which were removed under the daemon. They stay open for calls that
	// still use them. mu guards them.
	lost      []*os.File
	opener    *beneath.Opener
	trashSync sharedSync
	// noRename2 says that the kernel lacks renameat2(2).
	noRename2 atomic.Bool
	// beside is a directory on the same file system that has no quota of the working directory; empty if there is none.
	beside string
}

// Open opens the working directory at root, an absolute path. It makes the directory and its trash
// where they are missing. A later mount there does not change which directory the Dir works on.
func Open(root string) (*Dir, error) {
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("open working directory %q: the path is not absolute", root)
	}
	if err := kernel.MkdirAll(root, rootMode); err != nil {
		return nil, fmt.Errorf("make working directory: %w", err)
	}
	dir, err := kernel.Open(root, unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("open working directory: %w", err)
	}
	d := &Dir{root: filepath.Clean(root), dir: dir}
	if d.opener, err = beneath.New(d.fd()); err == nil {
		err = d.openTrash()
	}
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("open working directory %s: %w", root, err)
	}
	return d, nil
}

// Close releases the working directory. No other method may be running, and none works afterwards.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	errs := []error{d.trash.Load().Close(), d.dir.Close()}
	for _, old := range d.lost {
		errs = append(errs, old.Close())
	}
	return errors.Join(errs...)
}

// fd is the handle of the working directory; it is -1 once d is closed.
func (d *Dir) fd() int { return int(d.dir.Fd()) }

// trashFD is the handle of the trash; it is -1 once d is closed.
func (d *Dir) trashFD() int { return int(d.trash.Load().Fd()) }

// Path returns the absolute path of a volume's data directory, whether it exists or not. It is
// empty for a place whose names are not path elements.
func (d *Dir) Path(p volume.Place) string {
	if check(p) != nil {
		return ""
	}
	return filepath.Join(d.root, p.String())
}

// check refuses a place whose names are not path elements. Every path in this package is checked:
// the driver has validated the names, but a mistake there must not become a deletion elsewhere.
func check(p volume.Place) error {
	if _, err := volume.ParsePodUID("pod UID", string(p.Pod)); err != nil {
		return err
	}
	_, err := volume.ParseID("volume ID", string(p.ID))
	return err
}

// Bindings returns where data directories, or directories in them, are mounted; see
// [mount.Bindings]. The error wraps [ErrCovered] when something covers the working directory.
func (d *Dir) Bindings(pods string) ([]mount.Binding, error) {
	// A disk that is dead does not say which directory it has there. The mount table tells where those of the open
	// one are mounted.
	if err := d.CheckPath(); errors.Is(err, ErrCovered) {
		return nil, err
	}
	return mount.Bindings(d.dir, pods)
}

// CheckPath returns nil while the path of the working directory leads to the directory that d works
// on, and else an error that wraps [ErrCovered].
func (d *Dir) CheckPath() error {
	ours, answer := kernel.Fstat(d.fd())
	if answer == nil && ours.Nlink == 0 {
		return d.covered("it has been removed")
	}
	fd, err := kernel.Openat(unix.AT_FDCWD, d.root, unix.O_PATH|unix.O_DIRECTORY)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return d.covered("it has been moved or removed: " + err.Error())
	case err != nil:
		return fmt.Errorf("open working directory %s: %w", d.root, err)
	}
	defer unix.Close(fd)
	id, err := mount.ID(fd)
	switch {
	case err != nil:
		return fmt.Errorf("mount of working directory %s: %w", d.root, err)
	case id != d.opener.MountID():
		return d.covered("something is mounted over it, or its own mount was taken away")
	}
	there, err := kernel.Fstat(fd)
	switch err := errors.Join(answer, err); {
	case err != nil:
		return fmt.Errorf("stat working directory %s: %w", d.root, err)
	case there.Dev != ours.Dev || there.Ino != ours.Ino:
		return d.covered("another directory is in its place")
	}
	return nil
}

func (d *Dir) covered(how string) error {
	return fmt.Errorf("working directory %s: %w: %s; undo that, or drain the node before its working directory is changed",
		d.root, ErrCovered, how)
}

// Source returns a path to a volume's data directory for this process, which works while d is open,
// also when something covers the working directory. Mount and compare Source; show [Dir.Path] to
// people.
func (d *Dir) Source(p volume.Place) string {
	if check(p) != nil {
		return ""
	}
	return filepath.Join("/proc/self/fd", strconv.Itoa(d.fd()), p.String())
}
