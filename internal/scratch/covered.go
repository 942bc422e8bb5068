package scratch

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/volume"
)

// ErrCovered: the path of the working directory leads to another directory than the
// one that the Dir works on, or nowhere.
var ErrCovered = errors.New("it is not the directory any more that the daemon works on")

// Bindings returns where data directories are mounted, or something in them; see
// [mount.Bindings]. The question and what a deletion works on are the same open
// directory, so that nothing is taken for unmounted because something covers it. The
// error wraps [ErrCovered] when that is so.
func (d *Dir) Bindings(pods string) ([]mount.Binding, error) {
	if err := d.CheckPath(); err != nil {
		return nil, err
	}
	return mount.Bindings(d.dir, pods)
}

// CheckPath returns nil while the path of the working directory leads to the
// directory that d works on. The error wraps [ErrCovered] once that is not so.
func (d *Dir) CheckPath() error {
	var ours unix.Stat_t
	if err := kernel.IgnoreEINTR(func() error { return unix.Fstat(d.fd(), &ours) }); err != nil {
		return fmt.Errorf("stat working directory %s: %w", d.root, err)
	}
	if ours.Nlink == 0 {
		return d.covered("it has been removed")
	}
	var fd int
	err := kernel.IgnoreEINTR(func() (err error) {
		fd, err = unix.Open(d.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return d.covered("it has been moved or removed: " + err.Error())
	case err != nil:
		return fmt.Errorf("open working directory %s: %w", d.root, err)
	}
	defer unix.Close(fd)
	var there unix.Stat_t
	if err := kernel.IgnoreEINTR(func() error { return unix.Fstat(fd, &there) }); err != nil {
		return fmt.Errorf("stat working directory %s: %w", d.root, err)
	}
	id, err := mount.ID(fd)
	switch {
	case err != nil:
		return fmt.Errorf("mount of working directory %s: %w", d.root, err)
	case id != d.mountID:
		return d.covered("something is mounted over it, or its own mount was taken away")
	case there.Dev != ours.Dev || there.Ino != ours.Ino:
		return d.covered("another directory is in its place")
	}
	return nil
}

func (d *Dir) covered(how string) error {
	return fmt.Errorf("working directory %s: %w: %s; undo that, or drain the node before its working directory is changed", d.root, ErrCovered, how)
}

// Source returns a path to a volume's data directory that leads there whatever
// covers the working directory, for this process and as long as d is open. It is
// what to mount and to compare with; [Dir.Path] is what to show to people.
func (d *Dir) Source(p volume.Place) string {
	if check(p) != nil {
		return ""
	}
	return filepath.Join("/proc/self/fd", strconv.Itoa(d.fd()), p.String())
}
