package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// SameFileSystem tells whether two directories are on one file system, whatever
// mounts they are reached through. Subvolumes of btrfs are, although stat(2) gives
// each a device number of its own. Where a directory does not exist, the nearest one
// above it counts. It reads the whole mount table.
func SameFileSystem(one, other string) (bool, error) {
	table, err := readTable()
	if err != nil {
		return false, err
	}
	var places [2]place
	for i, dir := range []string{one, other} {
		resolved, id, err := resolveNearest(dir)
		if err != nil {
			return false, fmt.Errorf("file system of %s: %w", dir, err)
		}
		if places[i], err = locate(table, resolved, id); err != nil {
			return false, fmt.Errorf("file system of %s: %w", dir, err)
		}
	}
	return places[0].sameFileSystem(places[1].mount), nil
}

// resolveNearest is resolve of a directory, or of the nearest one above that exists.
func resolveNearest(dir string) (resolved string, id uint64, err error) {
	for {
		resolved, id, err = resolve(dir)
		missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
		if above := filepath.Dir(dir); missing && above != dir {
			dir = above
			continue
		}
		return resolved, id, err
	}
}
