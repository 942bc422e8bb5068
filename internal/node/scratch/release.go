package scratch

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

const (
	// fixed are the flags of an inode (chattr +i and +a) that refuse a removal, also to root.
	fixed = 0x10 | 0x20
	// fixedX are the same flags in the numbers of file_setattr(2).
	fixedX = 0x08 | 0x10
)

// refused reports whether an error may come from what release can undo.
func refused(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS)
}

// release clears what made the kernel refuse the removal of name in the directory at, and tells
// whether there was anything. A file in a read-only subvolume may be immutable too.
func (e *erasure) release(at int, name string) bool {
	writable := e.makeWritable(at, name)
	return e.dir.release(at, name) || writable
}

// makeWritable makes the read-only subvolume writable that is in the way: name itself, or the one
// whose top is a directory of the branch.
func (e *erasure) makeWritable(at int, name string) bool {
	if fd, err := e.dir.opener.Directory(at, name); err == nil {
		defer unix.Close(fd)
		if makeWritable(fd) {
			return true
		}
	}
	for _, above := range slices.Backward(e.branch) {
		if makeWritable(above.fd) {
			return true
		}
	}
	return false
}

// release clears the immutable and the append-only flag of name in the directory at, and of that
// directory, and reports whether either had one.
//
// A file may have other names, under which it loses its flags too. A pod can only link files that
// it can reach, and it takes privileges to set the flags.
func (d *Dir) release(at int, name string) bool {
	released := clearFixed(at)
	st, err := kernel.Lstatat(at, name)
	if err != nil {
		return released
	}
	// Opening anything else could block or have effects.
	if regularOrDirectory(&st) {
		// O_NONBLOCK does not wait for a lease on a file.
		fd, err := d.opener.Open(at, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC)
		if err == nil {
			defer unix.Close(fd)
			// Something else may have been put in its place.
			if st, err = kernel.Fstat(fd); err != nil || !regularOrDirectory(&st) {
				return released
			}
			return clearFixed(fd) || released
		}
	}
	return d.releaseUnopened(at, name) || released
}

// releaseUnopened does what release does without opening the file. It needs Linux 6.17, the first
// where a symbolic link or a FIFO can have such flags (XFS).
func (d *Dir) releaseUnopened(at int, name string) bool {
	fd, err := d.opener.Open(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	attr, err := kernel.FileGetattr(fd)
	if err != nil || attr.XFlags&fixedX == 0 {
		return false
	}
	attr.XFlags &^= fixedX
	return kernel.FileSetattr(fd, attr) == nil
}

func regularOrDirectory(st *unix.Stat_t) bool {
	kind := st.Mode & unix.S_IFMT
	return kind == unix.S_IFREG || kind == unix.S_IFDIR
}

// clearFixed clears the fixed flags of an open file or directory, and reports whether it had one.
func clearFixed(fd int) bool {
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err != nil || flags&fixed == 0 {
		return false
	}
	return kernel.SetFlags(fd, flags&^fixed) == nil
}

// makeWritable makes a read-only subvolume of btrfs, whose top directory is open, writable, and
// reports whether it was one.
func makeWritable(fd int) bool {
	flags, err := kernel.GetSubvolumeFlags(fd)
	if err != nil || flags&kernel.SubvolumeReadOnly == 0 {
		return false
	}
	return kernel.SetSubvolumeFlags(fd, flags&^kernel.SubvolumeReadOnly) == nil
}

// projectInherit is FS_XFLAG_PROJINHERIT of a directory: new files in it get its project, and the
// kernel refuses to move files of another project into it.
const projectInherit = 0x200

// leaveProject takes an open directory out of its project: names in it do not count against the
// project's limit, and directories of every project can be moved into it. It reports whether that
// took a change. A pod chooses the project of its files; a project quota on the working directory
// gives one to all other directories. Root of a user namespace may not change it.
func leaveProject(fd int) bool {
	attr, err := kernel.GetXAttr(fd)
	if err != nil || attr.XFlags&projectInherit == 0 && attr.Project == 0 {
		return false
	}
	attr.XFlags, attr.Project = attr.XFlags&^projectInherit, 0
	return kernel.SetXAttr(fd, attr) == nil
}
