package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Overlap tells whether one of two directories is, or lies in, the other, by whatever
// symbolic links and mounts they are reached: two paths without a common part may lead
// to a directory and to one in it. Where a directory does not exist, what counts is
// where it would be.
//
// It reads the whole mount table: meant for the start.
func Overlap(a, b string) (bool, error) {
	first, second, err := findBoth(a, b)
	return err == nil && (first.in(second) || second.in(first)), err
}

// SameFileSystem tells whether two directories are on one file system, whatever
// mounts they are reached through. Subvolumes of btrfs are, although stat(2) gives
// each a device number of its own. Where a directory does not exist, what counts is
// where it would be.
//
// It reads the whole mount table: meant for the start.
func SameFileSystem(a, b string) (bool, error) {
	first, second, err := findBoth(a, b)
	return err == nil && first.sameFileSystem(second.mount), err
}

// findBoth finds two directories in one reading of the mount table.
func findBoth(a, b string) (first, second spot, err error) {
	table, err := readTable()
	if err == nil {
		first, err = find(table, a)
	}
	if err == nil {
		second, err = find(table, b)
	}
	return first, second, err
}

// spot is a directory by the two names that it has.
type spot struct {
	place
	// path is without symbolic links.
	path string
}

// in tells whether s is o or lies in it.
func (s spot) in(o spot) bool {
	_, byPath := within(s.path, o.path)
	_, byPlace := within(s.root, o.root)
	return byPath || byPlace && s.sameFileSystem(o.mount)
}

// find finds a directory, or where it would be.
func find(table []*mountinfo.Info, dir string) (spot, error) {
	missing := ""
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		resolved, id, err := resolve(at)
		if at != "/" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)) {
			missing = path.Join(filepath.Base(at), missing)
			continue
		}
		if err != nil {
			return spot{}, err
		}
		here, err := locate(table, resolved, id)
		if err != nil {
			return spot{}, fmt.Errorf("where is %s: %w", dir, err)
		}
		here.root = path.Join(here.root, missing)
		return spot{place: here, path: path.Join(resolved, missing)}, nil
	}
}
