package files

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// What a path does not lead to. An error names the path, quoted. A path that leads nowhere is
// fs.ErrNotExist.
var (
	// ErrBadPath: no file can have this path, or it is not a valid ref.
	ErrBadPath = errors.New("not a valid path")
	// ErrBadContinue: the value does not continue a list.
	ErrBadContinue = errors.New("not a value that continues a list")
	// ErrNotRegular: it is a FIFO, a socket or a device, which is never opened.
	ErrNotRegular = errors.New("not a regular file")
	// ErrIsDirectory: it is a directory, where a file is needed.
	ErrIsDirectory = errors.New("is a directory")
	// ErrNotDirectory: it is not a directory, where one is needed.
	ErrNotDirectory = errors.New("not a directory")
	// ErrSymlink: it is a symbolic link, which is never followed.
	ErrSymlink = errors.New("is a symbolic link, which is not followed")
	// ErrCrossesMount: something is mounted there, which is never entered.
	ErrCrossesMount = errors.New("is a mount point, which is not entered")
)

// mostShown bounds how many bytes of a path an error shows.
const mostShown = 256

// at adds a path to an error, and replaces the kernel's number where this package has an error for
// it.
func at(p Path, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		err = fs.ErrNotExist
	case errors.Is(err, unix.EXDEV):
		err = ErrCrossesMount
	case errors.Is(err, unix.ENAMETOOLONG):
		err = fmt.Errorf("%w: a name in it is too long", ErrBadPath)
	}
	return fmt.Errorf("%s: %w", quoted(p.String()), err)
}

// quoted shows a path, or the end of a long one.
func quoted(path string) string {
	if len(path) > mostShown {
		return "..." + strconv.Quote(path[len(path)-mostShown:])
	}
	return strconv.Quote(path)
}
