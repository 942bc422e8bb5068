package scratch

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/volume"
)

const (
	// trashName is where discarded data waits to be erased. volume.ParsePodUID
	// refuses names that begin with a dot, so no pod can have it.
	trashName = ".trash"

	rootMode  = 0o750
	podMode   = 0o750
	trashMode = 0o700
)

// Dir is an open working directory. Its methods may be called from several
// goroutines.
type Dir struct {
	root  string
	dir   *os.File
	trash atomic.Pointer[os.File]
	mu    sync.Mutex
	// lost are trashes that somebody has removed. They stay open for whoever still
	// uses them. mu guards them.
	lost    []*os.File
	mountID uint64
	// trashSync is for SyncTrash.
	trashSync sharedSync
	// noOpenat2 says that openat2(2) is not to be had.
	noOpenat2 atomic.Bool
	// noRename2 says that renameat2(2) is not to be had.
	noRename2 atomic.Bool
}

// Open opens the working directory at root, an absolute path, and makes it and
// its trash first where they are missing. root itself may be reached through
// symbolic links. Whatever is mounted there afterwards does not change what the
// Dir works on.
func Open(root string) (*Dir, error) {
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("open working directory %q: the path is not absolute", root)
	}
	err := kernel.MkdirAll(root, rootMode)
	if err != nil {
		return nil, fmt.Errorf("make working directory: %w", err)
	}
	dir, err := kernel.Open(root, unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("open working directory: %w", err)
	}
	d := &Dir{root: filepath.Clean(root), dir: dir}
	if d.mountID, err = mount.ID(d.fd()); err == nil {
		err = d.openTrash()
	}
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("open working directory %s: %w", root, err)
	}
	return d, nil
}

func (d *Dir) openTrash() error {
	err := kernel.Mkdirat(d.fd(), trashName, trashMode)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make %s: %w", trashName, err)
	}
	fd, err := d.openChild(d.fd(), trashName)
	if err != nil {
		return fmt.Errorf("open %s: %w", trashName, notOurs(err))
	}
	// Where the working directory has a project quota, the trash takes part in neither
	// its limit nor its rule for renames.
	takeAnyProject(fd)
	leaveProject(fd)
	d.trash.Store(os.NewFile(uintptr(fd), trashName))
	return nil
}

// remakeTrash makes the trash anew if somebody has removed it. Nobody has to wait
// for a start of the daemon for that.
func (d *Dir) remakeTrash() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var st unix.Stat_t
	if err := unix.Fstat(d.trashFD(), &st); err != nil || st.Nlink > 0 {
		return err
	}
	old := d.trash.Load()
	if err := d.openTrash(); err != nil {
		return err
	}
	d.lost = append(d.lost, old)
	return nil
}

// Close releases the working directory. No other method may be running, and
// none works afterwards.
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

// Path returns the absolute path of a volume's data directory, whether it
// exists or not. It is empty for names that are no path elements.
func (d *Dir) Path(p volume.Place) string {
	if check(p) != nil {
		return ""
	}
	return filepath.Join(d.root, p.String())
}

// check refuses a place whose names are not path elements. Every path of this package
// passes it: the names were checked where they came in, but a mistake there must not
// become a deletion somewhere else.
func check(p volume.Place) error {
	if _, err := volume.ParsePodUID("pod UID", string(p.Pod)); err != nil {
		return err
	}
	_, err := volume.ParseID("volume ID", string(p.ID))
	return err
}

// Space returns the room on the working directory's file system.
func (d *Dir) Space() (volume.Space, error) {
	var st unix.Statfs_t
	err := kernel.IgnoreEINTR(func() error { return unix.Fstatfs(d.fd(), &st) })
	if err != nil {
		return volume.Space{}, fmt.Errorf("statfs %s: %w", d.root, err)
	}
	// f_blocks and f_bavail count in fragments; old FUSE servers leave the
	// fragment's size out.
	unit := uint64(st.Frsize)
	if unit == 0 {
		unit = uint64(st.Bsize)
	}
	return volume.Space{Total: sizeOf(st.Blocks*unit, st.Files), Free: sizeOf(st.Bavail*unit, st.Ffree)}, nil
}

// sizeOf takes the largest number for a number that is larger still: some file systems without
// a limit say so with all bits set.
func sizeOf(bytes, inodes uint64) volume.Size {
	return volume.Size{Bytes: int64(min(bytes, math.MaxInt64)), Inodes: int64(min(inodes, math.MaxInt64))}
}
