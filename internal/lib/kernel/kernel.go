// Package kernel makes every change that the daemon makes on the machine: to names and files, to
// their attributes, and to mounts. The linter forbids the system calls behind it in the other
// packages of the daemon.
//
// Each function makes one change that a crash cannot cut in two, except [Run]. It repeats a call that a
// signal interrupted, and returns the error as it is. Calls that only look may stand anywhere; they repeat
// with [IgnoreEINTR].
//
// Around each change lie two crash points, where a program that was built with the tag crashpoints
// may end itself by SIGKILL. A test kills such a daemon at each point in turn, starts it again and
// checks every promise. The name of a point is the calling function and the change:
// scratch.Dir.create/Mkdirat. A function that makes the same change at two lines has one point for
// both.
//
// [Syncfs], [FreeEOFBlocks] and the I/O priority have no crash points: they change no name, no byte
// and no mount.
package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// IgnoreEINTR repeats a call while a signal interrupts it. Some network and FUSE file systems let
// that happen.
func IgnoreEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// do makes a change. call is the name of the function that calls it.
func do(call string, o object, change func() error) error {
	if err := injected(call, o); err != nil {
		return err
	}
	return aroundPoint(call, change)
}

// object is what a change is made to: name in the open directory dir, or that directory.
type object struct {
	dir  int
	name string
}

func at(path string) object { return object{unix.AT_FDCWD, path} }

func (o object) path() string {
	if o.dir == unix.AT_FDCWD {
		return o.name
	}
	dir, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(o.dir))
	if err != nil {
		return o.name
	}
	return filepath.Join(dir, o.name)
}

var injections atomic.Pointer[func(call, path string) error]

// Inject makes changes fail until the end of the test: a change to path for which fail returns an
// error is not made, and returns that error. call is the name of the function of this package. It
// is for tests alone, and for one at a time.
func Inject(t interface{ Cleanup(func()) }, fail func(call, path string) error) {
	before := injections.Swap(&fail)
	t.Cleanup(func() { injections.Store(before) })
}

func injected(call string, o object) error {
	fail := injections.Load()
	if fail == nil {
		return nil
	}
	return (*fail)(call, o.path())
}

// Openat opens what is there (openat(2)); it creates nothing. dir is unix.AT_FDCWD for a path.
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

// Statfs is statfs(2).
func Statfs(path string) (st unix.Statfs_t, err error) {
	err = IgnoreEINTR(func() error { return unix.Statfs(path, &st) })
	return st, err
}
