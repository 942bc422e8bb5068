package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
)

// Showing is what is mounted at a place, compared with a directory that should
// be.
type Showing int

const (
	// NotMounted: nothing is mounted there, or there is no such place.
	NotMounted Showing = iota
	// ShowsSource: the directory that should be.
	ShowsSource
	// ShowsRemoved: a directory that has been removed since.
	ShowsRemoved
	// ShowsOther: something else.
	ShowsOther
)

// Shows tells whether the topmost mount at target shows the directory source,
// as it is at that path now.
func (m *Mounter) Shows(target, source string) (Showing, error) {
	there, mounted, err := m.look(target)
	switch {
	case !mounted && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)):
		return NotMounted, nil
	case err != nil:
		return ShowsOther, err
	case !mounted:
		return NotMounted, nil
	case there.links == 0:
		return ShowsRemoved, nil
	}
	should, err := lstat(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ShowsOther, nil
	case err != nil:
		return ShowsOther, err
	case there.dev == should.dev && there.ino == should.ino:
		return ShowsSource, nil
	}
	return ShowsOther, nil
}

// look tells whether something is mounted at path, also if it cannot tell what.
// One call answers both, unless the kernel is old.
func (m *Mounter) look(path string) (there inode, mounted bool, err error) {
	path = filepath.Clean(path)
	there, mounted, err = m.statx(path)
	if !errors.Is(err, errNoMountRoot) {
		return there, mounted, err
	}
	mounted, err = hasOwnMount(path)
	if err != nil || !mounted {
		return inode{}, false, err
	}
	there, err = lstat(path)
	return there, true, err
}

func lstat(path string) (inode, error) {
	var st unix.Stat_t
	if err := kernel.IgnoreEINTR(func() error { return unix.Lstat(path, &st) }); err != nil {
		return inode{}, fmt.Errorf("stat %s: %w", shown(path), err)
	}
	return inode{dev: uint64(st.Dev), ino: st.Ino, links: uint64(st.Nlink)}, nil
}
