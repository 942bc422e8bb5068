package mount

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
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
	mounted, err := m.IsMountPoint(target)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return NotMounted, nil
	case err != nil:
		return ShowsOther, err
	case !mounted:
		return NotMounted, nil
	}
	there, err := lstat(target)
	if err != nil {
		return ShowsOther, err
	}
	if there.Nlink == 0 {
		return ShowsRemoved, nil
	}
	should, err := lstat(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ShowsOther, nil
	case err != nil:
		return ShowsOther, err
	case there.Dev == should.Dev && there.Ino == should.Ino:
		return ShowsSource, nil
	}
	return ShowsOther, nil
}

func lstat(path string) (unix.Stat_t, error) {
	var st unix.Stat_t
	if err := ignoreEINTR(func() error { return unix.Lstat(path, &st) }); err != nil {
		return st, fmt.Errorf("stat %s: %w", path, err)
	}
	return st, nil
}
