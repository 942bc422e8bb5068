package scratch

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// The ioctls FS_IOC_FSGETXATTR and FS_IOC_FSSETXATTR.
	fsGetXAttr = 0x801c581f
	fsSetXAttr = 0x401c5820
	// projectInherit is FS_XFLAG_PROJINHERIT: what is made in a directory gets its
	// project, and nothing of another project may be moved into it.
	projectInherit = 0x200
)

// fsXAttr is struct fsxattr.
type fsXAttr struct {
	xflags, extentSize, extents, project, cowSize uint32
	_                                             [8]byte
}

func (a *fsXAttr) call(fd int, request uintptr) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(a)))
	return errno == 0
}

// takeAnyProject lets directories of every project be moved into an open directory,
// and tells whether it had to be changed for that. A pod chooses the project of its
// files; a project quota on the working directory gives one to all other directories.
//
// It cannot be done on a file system without projects, where it is not needed, nor by
// root of a user namespace.
func takeAnyProject(fd int) bool {
	var attr fsXAttr
	if !attr.call(fd, fsGetXAttr) || attr.xflags&projectInherit == 0 {
		return false
	}
	attr.xflags &^= projectInherit
	return attr.call(fd, fsSetXAttr)
}

// leaveProject takes an open directory out of its project. Names in it do not count
// against the project's limit then.
func leaveProject(fd int) {
	var attr fsXAttr
	if attr.call(fd, fsGetXAttr) && attr.project != 0 {
		attr.project = 0
		_ = attr.call(fd, fsSetXAttr) // it stays in its project
	}
}
