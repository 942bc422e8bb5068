package fakedriver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

func bind(source, target string, readOnly bool) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s on %s: %w", source, target, err)
	}
	if !readOnly {
		return nil
	}
	// Unlike a remount it leaves the other flags alone, some of which cannot be
	// taken away in a user namespace.
	attributes := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, target, 0, attributes); err != nil {
		return errors.Join(fmt.Errorf("make %s read-only: %w", target, err), unmount(target))
	}
	return nil
}

// unmount unmounts all that is stacked at target. Nothing there is no error.
func unmount(target string) error {
	for {
		err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW)
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil
		case err != nil:
			return err
		}
	}
}

func mounted(path string) bool {
	is, err := mountinfo.Mounted(path)
	return err == nil && is
}

// mountsBelow are the mounts in a directory, whose last element has no blanks.
func mountsBelow(dir string) ([]string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("mount table: %w", err)
	}
	// To look for the name is much faster than to parse a thousand lines, and it
	// is asked for each volume that is deleted.
	if !bytes.Contains(table, []byte("/"+filepath.Base(dir)+"/")) {
		return nil, nil
	}
	infos, err := mountinfo.GetMountsFromReader(bytes.NewReader(table), func(i *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(i.Mountpoint, dir+"/"), false
	})
	if err != nil {
		return nil, fmt.Errorf("mount table: %w", err)
	}
	var found []string
	for _, i := range infos {
		found = append(found, i.Mountpoint)
	}
	return found, nil
}

// free are the shares of bytes and of inodes that are free, the smaller of them.
func free(dir string) float64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil || s.Blocks == 0 {
		return 1
	}
	share := float64(s.Bavail) / float64(s.Blocks)
	if s.Files > 0 {
		share = min(share, float64(s.Ffree)/float64(s.Files))
	}
	return share
}

// total is how many bytes the file system of a directory has.
func total(dir string) uint64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0
	}
	return s.Blocks * uint64(s.Frsize) //nolint:gosec // it is a size
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
