package kernel

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// ReadFile returns the content of a file in the open directory dir, or at a path if dir is unix.AT_FDCWD, but no
// more than the given number of bytes. It is for short files of a disk and of sysfs. It goes past Go's poller, which
// has no use for these and takes half of the system calls, and takes a short read for the end of the file.
func ReadFile(dir int, name string, flags, most int) ([]byte, error) {
	fd, err := Openat(dir, name, unix.O_RDONLY|flags)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	defer unix.Close(fd)
	const atOnce = 4096
	content := make([]byte, 0, min(most, atOnce))
	for {
		n := 0
		err := IgnoreEINTR(func() (err error) {
			n, err = unix.Read(fd, content[len(content):cap(content)])
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		content = content[:len(content)+n]
		if len(content) < cap(content) || len(content) >= most {
			return content[:min(len(content), most)], nil
		}
		content = slices.Grow(content, min(len(content), most-len(content)))
	}
}

// Names returns the names in a directory, sorted. Like [ReadFile], it goes past Go's poller.
func Names(path string) (names []string, err error) {
	fd, err := Openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("open directory %s: %w", path, err)
	}
	defer unix.Close(fd)
	const atOnce = 8192
	buffer := make([]byte, atOnce)
	for {
		n := 0
		err := IgnoreEINTR(func() (err error) {
			n, err = unix.ReadDirent(fd, buffer)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read directory %s: %w", path, err)
		}
		if n <= 0 {
			slices.Sort(names)
			return names, nil
		}
		_, _, names = unix.ParseDirent(buffer[:n], -1, names)
	}
}

// Stat is stat(2).
func Stat(path string) (st unix.Stat_t, err error) {
	err = IgnoreEINTR(func() error { return unix.Stat(path, &st) })
	return st, err
}

// Readlink is readlink(2) of a link that is no longer than a path can be.
func Readlink(path string) (to string, err error) {
	buffer := make([]byte, unix.PathMax)
	err = IgnoreEINTR(func() error {
		n, err := unix.Readlink(path, buffer)
		to = string(buffer[:max(n, 0)])
		return err
	})
	return to, err
}
