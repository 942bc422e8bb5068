package unpack

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/sparse"
)

// holeSize is the unit in which zeros become holes, in bytes. It is the block size of nearly all
// file systems.
const holeSize = 4096

var hole [holeSize]byte

// file unpacks a regular file.
func (u *unpacker) file(dir int, name string, e *entry) error {
	if err := u.mayReplace(dir, name); err != nil {
		return err
	}
	var f *os.File
	partial, err := makePartial(name, func(partial string) error {
		// Of the mode, the umask takes something, and the bits above 0777 stay away.
		fd, err := openat(dir, partial, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, uint32(e.Mode)&0o777)
		if err == nil {
			f = os.NewFile(uintptr(fd), partial)
		}
		return err
	})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := u.contents(f, e); err != nil {
		return fmt.Errorf("%w; what there is of the file is in %q", err, partial)
	}
	if u.Owner {
		if err := f.Chown(e.Uid, e.Gid); err != nil {
			return err
		}
	}
	if err := unix.UtimesNanoAt(dir, partial, times(e.ModTime), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("set its time: %w", err)
	}
	// Some network file systems say only now that there was no room.
	if err := f.Close(); err != nil {
		return err
	}
	return u.rename(dir, partial, name)
}

// contents writes what the archive has of a file, and leaves holes elsewhere.
func (u *unpacker) contents(f *os.File, e *entry) error {
	for _, x := range e.extents {
		if err := u.extent(f, x); err != nil {
			return err
		}
	}
	return f.Truncate(e.Size)
}

func (u *unpacker) extent(f *os.File, x sparse.Extent) error {
	for done := int64(0); done < x.Length; {
		b := u.buf[:min(int64(len(u.buf)), x.Length-done)]
		if err := u.stream.full(b); err != nil {
			return err
		}
		if err := writeData(f, b, x.Offset+done); err != nil {
			return err
		}
		done += int64(len(b))
	}
	return nil
}

// writeData writes b except for its zeros, in units of holeSize.
func writeData(f io.WriterAt, b []byte, at int64) error {
	for len(b) > 0 {
		zero := run(b, true)
		b, at = b[zero:], at+int64(zero)
		data := run(b, false)
		if _, err := f.WriteAt(b[:data], at); err != nil {
			return err
		}
		b, at = b[data:], at+int64(data)
	}
	return nil
}

// run returns how much of the beginning of b is zeros, or is not, in units of holeSize and what
// remains at the end.
func run(b []byte, zero bool) int {
	n := 0
	for n < len(b) {
		unit := b[n:min(n+holeSize, len(b))]
		if bytes.Equal(unit, hole[:len(unit)]) != zero {
			break
		}
		n += len(unit)
	}
	return n
}

// link makes a hard link to a file that the archive names.
func (u *unpacker) link(dir int, name, to string) error {
	if err := u.mayReplace(dir, name); err != nil {
		return err
	}
	elements, err := split(to)
	if err != nil {
		return fmt.Errorf("link to %q: %w", to, err)
	}
	target, err := u.find(elements)
	if err != nil {
		return fmt.Errorf("link to %q: %w", to, err)
	}
	defer unix.Close(target.dir)
	if u.Overwrite && target.is(dir, name) {
		// A rename between two links to one file does nothing, and both stay.
		return nil
	}
	partial, err := makePartial(name, func(partial string) error {
		return retry(func() error { return unix.Linkat(target.dir, target.name, dir, partial, 0) })
	})
	if err != nil {
		return fmt.Errorf("link to %q: %w", to, err)
	}
	return u.rename(dir, partial, name)
}

// found is a file with a name in an open directory.
type found struct {
	dir      int
	name     string
	dev, ino uint64
}

// is reports whether a name is another one of the file.
func (f found) is(dir int, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Dev == f.dev && st.Ino == f.ino
}

// find finds a regular file below the top.
func (u *unpacker) find(elements []string) (found, error) {
	dir, err := openat(u.tree.levels[0].fd, ".", openDirectory, 0)
	if err != nil {
		return found{}, err
	}
	last := len(elements) - 1
	for _, e := range elements[:last] {
		next, err := openat(dir, e, openDirectory, 0)
		unix.Close(dir)
		if err != nil {
			return found{}, fmt.Errorf("open directory %q: %w", e, err)
		}
		dir = next
	}
	var st unix.Stat_t
	err = unix.Fstatat(dir, elements[last], &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = fmt.Errorf("it is no regular file: %w", ErrUnsafe)
	}
	if err != nil {
		unix.Close(dir)
		return found{}, err
	}
	return found{dir, elements[last], st.Dev, st.Ino}, nil
}

// symlink makes a symbolic link, which nothing here follows.
func (u *unpacker) symlink(dir int, name string, h *tar.Header) error {
	if err := u.mayReplace(dir, name); err != nil {
		return err
	}
	partial, err := makePartial(name, func(partial string) error {
		return retry(func() error { return unix.Symlinkat(h.Linkname, dir, partial) })
	})
	if err != nil {
		return err
	}
	if u.Owner {
		if err := unix.Fchownat(dir, partial, h.Uid, h.Gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	if err := unix.UtimesNanoAt(dir, partial, times(h.ModTime), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("set its time: %w", err)
	}
	return u.rename(dir, partial, name)
}
