package store

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

var errNotRegular = errors.New("it is not a regular file")

// openRegular opens a file, which is the owner's alone if it creates it. What is not a regular file is not read: to
// open a named pipe waits for another process, and to open a device may do anything.
// So it looks at the name first, and then at what it has opened.
func openRegular(path string, flag int) (*os.File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// The flags say whether that is an error.
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errNotRegular
	}
	file, err := os.OpenFile(path, flag|unix.O_NONBLOCK|unix.O_NOCTTY, 0o600)
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
