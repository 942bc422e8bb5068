package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// lockTimeout is long enough for a daemon that is about to exit to let go of the file.
var lockTimeout = 2 * time.Second

const lockRetry = 20 * time.Millisecond

var (
	errNotRegular = errors.New("it is not a regular file")
	errMoved      = errors.New("it has lost its name: the file was moved, or another file system is mounted there")
)

type (
	statFile func(name string) (os.FileInfo, error)
	openFile func(name string, flag int) (*os.File, error)
)

// openRegular opens a file, and neither a named pipe, which waits for another process, nor a
// device, which may do anything: it looks at the name first, and then at what it has opened.
func openRegular(stat statFile, open openFile, name string, flag int) (*os.File, error) {
	info, err := stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// open says whether that is an error.
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errNotRegular
	}
	file, err := open(name, flag|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	info, err = file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// hasName returns an error unless the name leads to the open file, or to nothing if that is nil.
func hasName(stat statFile, name string, file *os.File) error {
	named, err := stat(name)
	switch {
	case file == nil && errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case file == nil:
		return fs.ErrExist
	}
	opened, err := file.Stat()
	if err == nil && !os.SameFile(named, opened) {
		err = errMoved
	}
	return err
}

// lock takes the lock on the file that bbolt takes too.
func lock(file *os.File, shared bool, by owner) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	deadline := time.Now().Add(lockTimeout)
	for {
		err := kernel.IgnoreEINTR(func() error { return unix.Flock(int(file.Fd()), how|unix.LOCK_NB) })
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("lock %s: %w", file.Name(), err)
		case !time.Now().Before(deadline):
			return fmt.Errorf("%s is %w: %s on this working directory; stop it first", file.Name(), ErrLocked, by)
		}
		time.Sleep(lockRetry)
	}
}
