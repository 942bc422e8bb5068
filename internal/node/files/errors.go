package files

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/paths"
)

// What a path does not lead to. An error names the path, quoted. A path that leads nowhere is
// fs.ErrNotExist; one that no file can have is [paths.ErrBad].
var (
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

// at adds a path to an error, and replaces the kernel's number where this package has an error for
// it.
func at(p paths.Path, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		err = fs.ErrNotExist
	case errors.Is(err, unix.EXDEV):
		err = ErrCrossesMount
	case errors.Is(err, unix.ENAMETOOLONG):
		err = fmt.Errorf("%w: a name in it is too long", paths.ErrBad)
	}
	return fmt.Errorf("%s: %w", p.Quote(), err)
}
