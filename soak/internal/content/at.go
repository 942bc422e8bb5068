package content

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// retried repeats a system call that a signal interrupted, as the Go runtime
// sends some to its own threads.
func retried(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// retriedFD is retried for calls with a result.
func retriedFD(call func() (int, error)) (n int, err error) {
	err = retried(func() error {
		n, err = call()
		return err
	})
	return n, err
}

// openDir opens a directory to go on from. It needs no permission to read it.
func openDir(at int, name string) (int, error) {
	return retriedFD(func() (int, error) {
		return unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
}

// walker goes from directory to directory in a volume, one level at a time: a
// path as a whole may be longer than the kernel takes.
type walker struct {
	root int
	at   int // the handle of path; root itself if path is empty
	path []string
}

func newWalker(dir string) (*walker, error) {
	fd, err := openDir(unix.AT_FDCWD, dir)
	if err != nil {
		return nil, fmt.Errorf("open the volume's directory %s: %w", dir, err)
	}
	return &walker{root: fd, at: fd}, nil
}

// enter goes to a directory. Below the present one it is near.
func (w *walker) enter(path []string) error {
	near := len(path) >= len(w.path) && slices.Equal(path[:len(w.path)], w.path)
	if !near {
		w.home()
	}
	for _, name := range path[len(w.path):] {
		fd, err := openDir(w.at, name)
		if err != nil {
			return fmt.Errorf("open directory %s: %w", shown(path), err)
		}
		if w.at != w.root {
			unix.Close(w.at)
		}
		w.at, w.path = fd, path[:len(w.path)+1]
	}
	return nil
}

// home goes back to the volume's directory.
func (w *walker) home() {
	if w.at != w.root {
		unix.Close(w.at)
	}
	w.at, w.path = w.root, nil
}

func (w *walker) close() {
	w.home()
	unix.Close(w.root)
}

// file opens a file in the present directory.
func (w *walker) file(name string, flags int, mode uint32) (*os.File, error) {
	fd, err := retriedFD(func() (int, error) {
		return unix.Openat(w.at, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	})
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// create makes a file in the present directory, and removes it again when it
// cannot be finished, so that what is there is always complete.
func (w *walker) create(name string, mode uint32, write func(*os.File) error) error {
	f, err := w.file(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	// The permissions come last: writing takes a setuid bit away.
	err = write(f)
	if err == nil {
		err = retried(func() error { return unix.Fchmod(int(f.Fd()), mode) })
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, unix.Unlinkat(w.at, name, 0))
	}
	return nil
}

// mkdir makes a directory in the present one.
func (w *walker) mkdir(name string, mode uint32) error {
	if err := retried(func() error { return unix.Mkdirat(w.at, name, 0o700) }); err != nil {
		return fmt.Errorf("mkdir: %w", err)
	}
	// The umask took part in the mode.
	f, err := w.file(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return retried(func() error { return unix.Fchmod(int(f.Fd()), mode) })
}

// same reports whether two streams have the same bytes up to the end of wanted,
// which has size bytes at most.
func same(got, wanted io.Reader, size int64) (bool, error) {
	piece := min(size, pieceSize)
	a, b := make([]byte, piece), make([]byte, piece)
	for {
		n, err := io.ReadFull(wanted, b)
		if n == 0 {
			return true, nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return false, err
		}
		if _, err := io.ReadFull(got, a[:n]); err != nil {
			return false, err
		}
		if !slices.Equal(a[:n], b[:n]) {
			return false, nil
		}
	}
}
