//go:build unix

package verbs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openOwn opens a file to read and write, for this process alone: while another has it the error is
// errBusy. With the flag os.O_CREATE it makes one that does not exist. It follows no symbolic link, and a FIFO there blocks nothing.
func openOwn(name string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, mode)
	if err != nil {
		return nil, err
	}
	// One that had it may have given it another name, and closed it, since it was opened here.
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || !hasName(f, name) {
		return nil, errors.Join(errBusy, f.Close())
	}
	return f, nil
}

// hasName reports whether a name is that of an open file.
func hasName(f *os.File, name string) bool {
	is, err1 := f.Stat()
	named, err2 := os.Lstat(name)
	return err1 == nil && err2 == nil && os.SameFile(is, named)
}
