package unpack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// handle is a folder of Linux: an O_PATH handle, which needs no right to read the directory.
type handle int

const openDirectory = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC

// openHandle opens the directory to unpack into, which may be a symbolic link.
func openHandle(path string) (folder, error) {
	fd, err := openat(unix.AT_FDCWD, path, openDirectory, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return handle(fd), nil
}

func (h handle) enter(name string) (folder, error) {
	fd, err := openat(int(h), name, openDirectory|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, errNoDirectory
	case err != nil:
		return nil, err
	}
	return handle(fd), nil
}

func (h handle) makeDirectory(name string, mode fs.FileMode) error {
	return retry(func() error { return unix.Mkdirat(int(h), name, uint32(mode.Perm())) })
}

func (h handle) list() ([]string, error) {
	fd, err := openat(int(h), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(fd), ".")
	defer dir.Close()
	return dir.Readdirnames(-1)
}

func (h handle) grant(name string) (before fs.FileMode, err error) {
	dir, err := h.enter(name)
	if err != nil {
		return 0, err
	}
	defer dir.close()
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.(handle)), &st); err != nil {
		return 0, err
	}
	before = fs.FileMode(st.Mode) & 0o777
	return before, dir.(handle).change(before | 0o700)
}

// change sets the mode of the directory. The way through /proc needs no permission on it.
func (h handle) change(mode fs.FileMode) error {
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", int(h)), uint32(mode))
}

func (h handle) create(name string, mode fs.FileMode) (*os.File, error) {
	fd, err := openat(int(h), name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, uint32(mode.Perm()))
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (h handle) link(name string, in folder, to string) error {
	return retry(func() error { return unix.Linkat(int(in.(handle)), to, int(h), name, 0) })
}

func (h handle) symlink(name, to string) error {
	return retry(func() error { return unix.Symlinkat(to, int(h), name) })
}

func (h handle) remove(name string) error {
	return retry(func() error { return unix.Unlinkat(int(h), name, 0) })
}

func (h handle) rename(name, to string, replace bool) error {
	err := retry(func() error {
		if replace {
			return unix.Renameat(int(h), name, int(h), to)
		}
		return unix.Renameat2(int(h), name, int(h), to, unix.RENAME_NOREPLACE)
	})
	if !replace && (errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS)) {
		return errNotAtOnce
	}
	return err
}

func (h handle) look(name string) (thing, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(h), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return newThing(st), err
}

func (h handle) self() (thing, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(h), &st)
	return newThing(st), err
}

func newThing(st unix.Stat_t) thing {
	t := thing{kind: fs.ModeIrregular, dev: st.Dev, ino: st.Ino}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		t.kind = 0
	case unix.S_IFDIR:
		t.kind = fs.ModeDir
	case unix.S_IFLNK:
		t.kind = fs.ModeSymlink
	}
	return t
}

func (h handle) setTime(name string, modified time.Time) error {
	return unix.UtimesNanoAt(int(h), name, times(modified), unix.AT_SYMLINK_NOFOLLOW)
}

func (h handle) complete(mode fs.FileMode, modified time.Time) error {
	// The mode is the last: it may take the right to look at ".".
	err := unix.UtimesNanoAt(int(h), ".", times(modified), 0)
	return errors.Join(err, h.restrict(mode))
}

func (h handle) restrict(mode fs.FileMode) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(h), &st); err != nil {
		return err
	}
	// The kernel has applied the umask when the directory was made.
	if all := fs.FileMode(st.Mode) & 0o777; all&mode != all {
		return h.change(all & mode)
	}
	return nil
}

func (h handle) close() { unix.Close(int(h)) }

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
