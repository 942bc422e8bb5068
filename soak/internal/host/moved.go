package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MountID is the kernel's number for the mount that a path is on: see
// [Mount.ID]. A symlink at the end of the path is not followed. It needs Linux
// 5.8.
func MountID(path string) (int, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, filepath.Clean(path), unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_MNT_ID,
		&st); err != nil {
		return 0, fmt.Errorf("which mount: statx %s: %w", path, err)
	}
	if st.Mask&unix.STATX_MNT_ID == 0 {
		return 0, fmt.Errorf("which mount is %s on: %w: the kernel does not tell; it needs Linux 5.8", path, errors.ErrUnsupported)
	}
	return int(st.Mnt_id), nil
}

// UnmountID takes a mount away wherever it is by now: a mount goes with the
// directories above it when those are renamed. It is an error that wraps
// fs.ErrNotExist if there is no such mount any more.
func UnmountID(id int) error {
	// It may move between the look at the table and the unmount.
	const tries = 20
	var err error
	for range tries {
		var point string
		if point, err = pointOf(id); err != nil {
			return err
		}
		err = Unmount(point)
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return err
}

// HasMount reports whether there still is a mount in this namespace.
func HasMount(id int) (bool, error) {
	_, err := pointOf(id)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func pointOf(id int) (string, error) {
	mounts, err := Mounts()
	if err != nil {
		return "", err
	}
	for _, m := range mounts {
		if m.ID == id {
			return m.Point, nil
		}
	}
	return "", fmt.Errorf("mount number %d: %w in the mount table", id, fs.ErrNotExist)
}
