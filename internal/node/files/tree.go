package files

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/node/beneath"
)

// Tree is an open data directory. Its methods may be called from several goroutines.
type Tree struct {
	opener *beneath.Opener
	mu     sync.Mutex
	// fd is the data directory; -1 once the tree is closed.
	fd int
}

// New returns the tree below the open data directory fd, which it takes over. opener is of the mount
// that the directory is on.
func New(fd int, opener *beneath.Opener) *Tree { return &Tree{fd: fd, opener: opener} }

// Close releases the data directory. It may be called several times, and while other methods run:
// those, and open files, hold handles of their own. Methods that begin later return fs.ErrClosed.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	fd := t.fd
	if fd < 0 {
		return nil
	}
	t.fd = -1
	return os.NewSyscallError("close", unix.Close(fd))
}

// top returns a new handle of the data directory.
func (t *Tree) top() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fd < 0 {
		return -1, fs.ErrClosed
	}
	return kernel.Openat(t.fd, ".", unix.O_PATH|unix.O_DIRECTORY)
}

// Stat returns what is at a path: for a symbolic link the link itself, for a mount point an entry of
// the type [Mount].
func (t *Tree) Stat(p paths.Path) (Entry, error) {
	fd, e, err := t.look(p)
	if err != nil {
		return Entry{}, err
	}
	closeHandle(fd)
	return e, nil
}

// look returns a handle that stands for what is at a path, and what that is. For a mount point there
// is no handle: it is -1.
func (t *Tree) look(p paths.Path) (int, Entry, error) {
	here, err := t.top()
	if err != nil {
		return -1, Entry{}, at(p, err)
	}
	way := paths.Path{}
	for _, name := range p.Elements() {
		way = way.Join(name)
		fd, e, err := t.lookAt(here, way)
		unix.Close(here)
		if err == nil && way != p {
			err = enterable(e)
		}
		if err != nil {
			closeHandle(fd)
			return -1, Entry{}, at(way, err)
		}
		if way == p {
			return fd, e, nil
		}
		here = fd
	}
	e, err := newEntry(p, here)
	if err != nil {
		unix.Close(here)
		return -1, Entry{}, at(p, err)
	}
	return here, e, nil
}

// lookAt is look for the last element of a path, in the directory dir.
func (t *Tree) lookAt(dir int, p paths.Path) (int, Entry, error) {
	fd, err := t.opener.Look(dir, p.Base())
	if errors.Is(err, unix.EXDEV) {
		return -1, Entry{Name: p.Base(), Path: p, Type: Mount}, nil
	}
	if err != nil {
		return -1, Entry{}, err
	}
	e, err := newEntry(p, fd)
	if err != nil {
		unix.Close(fd)
		return -1, Entry{}, err
	}
	return fd, e, nil
}

// enterable returns why an entry cannot be entered, or nil for a directory.
func enterable(e Entry) error {
	switch e.Type {
	case Directory:
		return nil
	case Symlink:
		return ErrSymlink
	case Mount:
		return ErrCrossesMount
	}
	return ErrNotDirectory
}

// readable returns why an entry cannot be opened, or nil for a regular file.
func readable(e Entry) error {
	switch e.Type {
	case Regular:
		return nil
	case Directory:
		return ErrIsDirectory
	case Symlink:
		return ErrSymlink
	case Mount:
		return ErrCrossesMount
	}
	return ErrNotRegular
}

// closeHandle closes a handle, if it is one.
func closeHandle(fd int) {
	if fd >= 0 {
		unix.Close(fd)
	}
}
