package scratch

import (
	"github.com/katbox/katbox/internal/kernel"
)

// projectInherit is FS_XFLAG_PROJINHERIT: what is made in a directory gets its
// project, and nothing of another project may be moved into it.
const projectInherit = 0x200

// takeAnyProject lets directories of every project be moved into an open directory,
// and tells whether it had to be changed for that. A pod chooses the project of its
// files; a project quota on the working directory gives one to all other directories.
//
// It cannot be done on a file system without projects, where it is not needed, nor by
// root of a user namespace.
func takeAnyProject(fd int) bool {
	attr, err := kernel.GetXAttr(fd)
	if err != nil || attr.XFlags&projectInherit == 0 {
		return false
	}
	attr.XFlags &^= projectInherit
	return kernel.SetXAttr(fd, attr) == nil
}

// leaveProject takes an open directory out of its project. Names in it do not count
// against the project's limit then.
func leaveProject(fd int) {
	attr, err := kernel.GetXAttr(fd)
	if err == nil && attr.Project != 0 {
		attr.Project = 0
		_ = kernel.SetXAttr(fd, attr) // it stays in its project
	}
}
