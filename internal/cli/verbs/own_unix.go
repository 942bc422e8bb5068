//go:build unix

package verbs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openOwn opens a file to read and write, for this process alone: while another has it the error is
// errBusy. A file system may have no locks; there two processes may have it. With the flag os.O_CREATE it makes one
// that does not exist. It follows no symbolic link, and a FIFO there blocks nothing.
func openOwn(name string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, mode)
	if err != nil {
		return nil, err
	}
	// One that had it may have given it another name, and closed it, since it was opened here.
	err = lock(f)
	if err == nil && !hasName(f, name) {
		err = errBusy
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lock locks a file if its file system has locks.
func lock(f *os.File) error {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return errBusy
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL):
			return nil
		case err != nil:
			return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
		default:
			return nil
		}
	}
}

// hasName reports whether a name is that of an open file.
func hasName(f *os.File, name string) bool {
	is, err1 := f.Stat()
	named, err2 := os.Lstat(name)
	return err1 == nil && err2 == nil && os.SameFile(is, named)
}
