package kernel

import (
	"golang.org/x/sys/unix"
)

// Openat opens what is there (openat(2)); it creates nothing. dir is unix.AT_FDCWD for a
// path.
func Openat(dir int, name string, flags int) (fd int, err error) {
	err = IgnoreEINTR(func() error {
		fd, err = unix.Openat(dir, name, flags&^unix.O_CREAT|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// Fstat is fstat(2).
func Fstat(fd int) (st unix.Stat_t, err error) {
	err = IgnoreEINTR(func() error { return unix.Fstat(fd, &st) })
	return st, err
}

// Lstatat is fstatat(2), which follows no symbolic link and mounts nothing.
func Lstatat(dir int, name string) (st unix.Stat_t, err error) {
	err = IgnoreEINTR(func() error {
		return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	})
	return st, err
}

// Fstatfs is fstatfs(2).
func Fstatfs(fd int) (st unix.Statfs_t, err error) {
	err = IgnoreEINTR(func() error { return unix.Fstatfs(fd, &st) })
	return st, err
}
