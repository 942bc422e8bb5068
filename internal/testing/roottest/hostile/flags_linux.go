package hostile

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// Fix sets flags of chattr, or skips the test where that is not possible.
func Fix(t testing.TB, path string, flags uint32) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	had, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(had|flags))
	}
	if errors.Is(err, unix.EPERM) {
		roottest.Lacks(t, "root", err)
	}
	must(t, err)
}

// Flags of chattr: +i and +a.
const (
	Immutable  = 0x10
	AppendOnly = 0x20
)

// fixUnopened makes a symbolic link or a FIFO immutable, where that is possible.
func fixUnopened(t testing.TB, path string) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	attr, err := kernel.FileGetattr(fd)
	if err == nil {
		attr.XFlags |= 0x8
		if err := kernel.FileSetattr(fd, attr); err != nil {
			t.Errorf("%s cannot be made immutable, though its flags can be read: %v", path, err)
		}
	}
}

// SetProject gives a directory a project, which what is made in it inherits, and reports whether the
// file system has projects.
func SetProject(t testing.TB, path string, project uint32) bool {
	t.Helper()
	fd, err := unix.Open(path, directory, 0)
	must(t, err)
	defer unix.Close(fd)
	return kernel.SetXAttr(fd, kernel.XAttr{XFlags: 0x200, Project: project}) == nil
}
