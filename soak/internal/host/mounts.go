package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Mount is a line of the mount table of this process's namespace.
type Mount struct {
	// ID is the kernel's number for the mount. It is used again later.
	ID int
	// Point is where it is mounted. The kernel appends "//deleted" when the
	// directory below has been removed meanwhile.
	Point string
	// Root is which directory or file of the file system is mounted: for a bind
	// mount its source, as a path inside the source's file system.
	Root string
	// Source is what the file system is on, a device or just a word.
	Source string
	FSType string
	// ReadOnly says that nothing can be written through this mount, because of
	// the mount itself or because the whole file system is read-only.
	ReadOnly bool
}

// Mounts reads the mount table, in the order of its lines. A path shows once
// for each mount that is stacked on it.
//
// The kernel hands the table out in pieces of about a page, however large the
// read, and mounts come and go in between. So the table is read again when it
// has changed meanwhile, which the kernel tells. When it changes all the time,
// the last reading counts after some tries. It has all mounts that were there
// all the time, each once (since Linux 5.8; before, it may miss some); of those
// that came or went in between it has some, perhaps such as never were there
// together.
func Mounts() ([]Mount, error) {
	const tries = 20
	for try := 1; ; try++ {
		table, whole, err := readMountTable()
		if err != nil {
			return nil, fmt.Errorf("read the mount table: %w", err)
		}
		if whole || try == tries {
			return parseMounts(table)
		}
	}
}

// readMountTable reads the table once. It is whole if it did not change since
// it was opened: a change is an urgent event for poll(2), see proc(5).
func readMountTable() (table []byte, whole bool, err error) {
	// Not os.Open: the runtime would poll the file too, and the kernel tells of
	// a change only once.
	fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, &os.PathError{Op: "open", Path: "/proc/self/mountinfo", Err: err}
	}
	file := os.NewFile(uintptr(fd), "/proc/self/mountinfo")
	defer file.Close()
	if table, err = io.ReadAll(file); err != nil {
		return nil, false, err
	}
	events := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}
	for {
		_, err := unix.Poll(events, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, false, os.NewSyscallError("poll", err)
		}
		return table, events[0].Revents&(unix.POLLPRI|unix.POLLERR) == 0, nil
	}
}

// parseMounts reads a text in the format of /proc/self/mountinfo.
func parseMounts(table []byte) ([]Mount, error) {
	infos, err := mountinfo.GetMountsFromReader(bytes.NewReader(table), nil)
	if err != nil {
		return nil, fmt.Errorf("understand the mount table: %w", err)
	}
	mounts := make([]Mount, 0, len(infos))
	for _, info := range infos {
		mounts = append(mounts, Mount{
			ID: info.ID, Point: info.Mountpoint, Root: info.Root, Source: info.Source, FSType: info.FSType,
			ReadOnly: hasOption(info.Options, "ro") || hasOption(info.VFSOptions, "ro"),
		})
	}
	return mounts, nil
}

func hasOption(options, name string) bool {
	return slices.Contains(strings.Split(options, ","), name)
}

// MountsBelow returns the mounts below a directory, but not those on the
// directory itself. The path has to be absolute and without symlinks. See
// [Mounts] for what it may miss.
func MountsBelow(dir string) ([]Mount, error) {
	mounts, err := Mounts()
	if err != nil {
		return nil, err
	}
	return below(mounts, dir), nil
}

func below(mounts []Mount, dir string) []Mount {
	prefix := strings.TrimSuffix(filepath.Clean(dir), "/") + "/"
	return slices.DeleteFunc(slices.Clone(mounts), func(m Mount) bool {
		return !strings.HasPrefix(m.Point, prefix) || m.Point == "/"
	})
}

// UnmountBelow unmounts what is mounted below a directory, except at the paths to keep,
// each as [UnmountWhenFree] does.
func UnmountBelow(dir string, patience time.Duration, keep ...string) error {
	mounts, err := MountsBelow(dir)
	if err != nil {
		return err
	}
	// The last ones may be on top of others.
	for _, m := range slices.Backward(mounts) {
		if slices.Contains(keep, m.Point) {
			continue
		}
		if err := UnmountWhenFree(m.Point, patience); err != nil {
			return err
		}
	}
	return nil
}

// UnmountWhenFree is [Unmount], and waits while the mount is busy: for processes that
// were killed and have not ended yet, and for the kernel, which lets go of a socket's
// directory when the last connection is closed for good.
func UnmountWhenFree(path string, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if err := Unmount(path); !errors.Is(err, unix.EBUSY) || !time.Now().Before(deadline) {
			return err
		}
	}
}

// MountedAt reports whether something is mounted at this one path. It does not
// read the mount table and so has a sure answer at any time, also while others
// mount. A symlink at the end of the path is not followed, so nothing can be
// mounted there; nor is anything mounted at a path that does not exist. It
// needs Linux 5.8.
func MountedAt(path string) (bool, error) {
	var st unix.Statx_t
	for {
		// A slash at the end would follow the symlink before it.
		err := unix.Statx(unix.AT_FDCWD, filepath.Clean(path), unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &st)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOENT):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("is something mounted: statx %s: %w", path, err)
		case st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0:
			return false, fmt.Errorf("is something mounted at %s: %w: the kernel does not tell; it needs Linux 5.8", path, errors.ErrUnsupported)
		}
		return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
	}
}

// Bind makes the directory or file source visible at target too, which has to
// exist and be of the same sort. What is mounted below source is left out.
func Bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", source, target, err)
	}
	return nil
}

// Unmount takes away the topmost mount at path, and never lazily: the error
// wraps EBUSY while a process uses it, and EINVAL when nothing is mounted there.
// A symlink at the end of the path is not followed.
func Unmount(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("unmount %s: %w; a process still has it open, or something is mounted below", path, err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("unmount %s: %w; nothing is mounted there", path, err)
	}
	return fmt.Errorf("unmount %s: %w", path, err)
}
