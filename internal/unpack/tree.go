package unpack

import (
	"archive/tar"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// maxOpen is how many directories are held open above each other.
const maxOpen = 64

// tree is the directory that the archive is in now, and those above it. It closes those above the
// lowest maxOpen, and finds them again on the way back.
type tree struct {
	owner bool
	// levels begin with the directory to unpack into, which the caller closes.
	levels []level
}

// level is a directory.
type level struct {
	name string
	// fd is -1 while the directory is closed. Then dev and ino say which it was.
	fd       int
	dev, ino uint64
	// made: it did not exist before. header is what the archive says about it, once it has.
	made   bool
	header *tar.Header
}

const openDirectory = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// enter goes to the directory of the given elements and returns its handle, valid until the next call.
// Directories that are missing are made.
func (t *tree) enter(elements []string) (fd int, err error) {
	same := 0
	for same < len(elements) && same+1 < len(t.levels) && t.levels[same+1].name == elements[same] {
		same++
	}
	for len(t.levels) > same+1 {
		if err := t.leave(); err != nil {
			return -1, err
		}
	}
	for _, name := range elements[same:] {
		if err := t.descend(name); err != nil {
			return -1, err
		}
	}
	return t.levels[len(t.levels)-1].fd, nil
}

// directory is enter for a directory that the archive says something about.
func (t *tree) directory(elements []string, h *tar.Header) error {
	if _, err := t.enter(elements); err != nil {
		return err
	}
	t.levels[len(t.levels)-1].header = h
	return nil
}

// descend goes to a directory in the present one, and makes it if it does not exist.
func (t *tree) descend(name string) error {
	above := t.levels[len(t.levels)-1].fd
	err := retry(func() error { return unix.Mkdirat(above, name, 0o777) })
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make directory %q: %w", name, err)
	}
	made := err == nil
	fd, err := openat(above, name, openDirectory, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%q is in the way and is no directory: %w", name, ErrExists)
	case err != nil:
		return fmt.Errorf("open directory %q: %w", name, err)
	}
	t.levels = append(t.levels, level{name: name, fd: fd, made: made})
	// The first one is the caller's.
	far := len(t.levels) - 1 - maxOpen
	if far < 1 || t.levels[far].fd < 0 {
		return nil
	}
	return t.levels[far].rest()
}

// rest closes a directory until those below it are done.
func (l *level) rest() error {
	var st unix.Stat_t
	if err := unix.Fstat(l.fd, &st); err != nil {
		return fmt.Errorf("stat %q: %w", l.name, err)
	}
	unix.Close(l.fd)
	l.fd, l.dev, l.ino = -1, st.Dev, st.Ino
	return nil
}

// leave goes to the directory above, after it has given the present one its mode, owner and time.
func (t *tree) leave() error {
	last := len(t.levels) - 1
	here := &t.levels[last]
	if above := &t.levels[last-1]; above.fd < 0 {
		if err := above.reopen(here.fd); err != nil {
			return err
		}
	}
	err := here.complete(t.owner)
	unix.Close(here.fd)
	t.levels = t.levels[:last]
	return err
}

// reopen opens a directory again from one in it.
func (l *level) reopen(below int) error {
	fd, err := openat(below, "..", openDirectory, 0)
	if err != nil {
		return fmt.Errorf("open directory %q again: %w", l.name, err)
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && (st.Dev != l.dev || st.Ino != l.ino) {
		err = errors.New("something moved what is in it")
	}
	if err != nil {
		unix.Close(fd)
		return fmt.Errorf("open directory %q again: %w", l.name, err)
	}
	l.fd = fd
	return nil
}

// complete gives a directory what the archive says about it, unless it existed before.
func (l *level) complete(owner bool) error {
	if !l.made || l.header == nil {
		return nil
	}
	if owner {
		if err := unix.Fchownat(l.fd, ".", l.header.Uid, l.header.Gid, 0); err != nil {
			return fmt.Errorf("owner of directory %q: %w", l.name, err)
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(l.fd, &st); err != nil {
		return fmt.Errorf("stat %q: %w", l.name, err)
	}
	if err := unix.UtimesNanoAt(l.fd, ".", times(l.header.ModTime), 0); err != nil {
		return fmt.Errorf("time of directory %q: %w", l.name, err)
	}
	// The kernel has applied the umask when the directory was made. The mode is the last: it may
	// take the right to look at ".".
	mode := st.Mode & 0o777 & uint32(l.header.Mode)
	if err := unix.Fchmodat(l.fd, ".", mode, 0); err != nil {
		return fmt.Errorf("mode of directory %q: %w", l.name, err)
	}
	return nil
}

// finish leaves all directories.
func (t *tree) finish() error {
	_, err := t.enter(nil)
	return err
}

// close closes what is still open, except the first.
func (t *tree) close() {
	for _, l := range t.levels[1:] {
		if l.fd >= 0 {
			unix.Close(l.fd)
		}
	}
	t.levels = t.levels[:1]
}

// times are the times for a file or directory; the first of them is when it was read.
func times(modified time.Time) []unix.Timespec {
	return []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: modified.Unix(), Nsec: int64(modified.Nanosecond())}}
}

func openat(dir int, name string, flags int, mode uint32) (fd int, err error) {
	err = retry(func() (err error) {
		fd, err = unix.Openat(dir, name, flags, mode)
		return err
	})
	return fd, err
}

// retry repeats a call that a signal interrupts.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
