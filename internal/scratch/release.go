package scratch

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
)

const (
	// fixed are the flags of an inode (chattr +i and +a) that have a removal
	// refused, to root as well.
	fixed = 0x10 | 0x20
	// fixedX are the same in the words of file_setattr(2).
	fixedX = 0x08 | 0x10
)

// refused tells whether an error may come from what release can undo.
func refused(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS)
}

// release takes away what had the removal of name in the directory at refused,
// and tells whether there was anything. A file in a read-only subvolume may be
// immutable as well.
func (e *eraser) release(at int, name string) bool {
	writable := e.makeWritable(at, name)
	return e.dir.release(at, name) || writable
}

// makeWritable finds the read-only subvolume that is in the way: name, when that
// is to be moved, or one that a directory of the branch is the top of.
func (e *eraser) makeWritable(at int, name string) bool {
	if fd, err := e.dir.openChild(at, name); err == nil {
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

// release takes the immutable and the append-only flag from name in the
// directory at, and from that directory, and tells whether either had one.
//
// A file may have other names, and loses its flags under those too. A pod can
// only link what it can reach, and had to be allowed to set the flags.
func (d *Dir) release(at int, name string) bool {
	released := clearFixed(at)
	var st unix.Stat_t
	err := kernel.IgnoreEINTR(func() error {
		return unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	})
	if err != nil {
		return released
	}
	// Opening anything else could block, or have effects.
	if regularOrDirectory(&st) {
		// A lease on a file is not waited for.
		fd, err := d.openUnmounted(at, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC)
		if err == nil {
			defer unix.Close(fd)
			// Somebody may have put something else in its place.
			if unix.Fstat(fd, &st) != nil || !regularOrDirectory(&st) {
				return released
			}
			return clearFixed(fd) || released
		}
	}
	return d.releaseUnopened(at, name) || released
}

// releaseUnopened does without opening what release does. It needs Linux 6.17,
// which is the first where a symbolic link or a FIFO can have such flags (XFS).
func (d *Dir) releaseUnopened(at int, name string) bool {
	fd, err := d.openUnmounted(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
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

// clearFixed clears the flags of an open file or directory that are fixed, and
// tells whether it had one.
func clearFixed(fd int) bool {
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err != nil || flags&fixed == 0 {
		return false
	}
	return kernel.SetFlags(fd, flags&^fixed) == nil
}

// makeWritable makes the read-only subvolume of btrfs writable whose top
// directory is open, and tells whether it was one.
func makeWritable(fd int) bool {
	flags, err := kernel.GetSubvolumeFlags(fd)
	if err != nil || flags&kernel.SubvolumeReadOnly == 0 {
		return false
	}
	return kernel.SetSubvolumeFlags(fd, flags&^kernel.SubvolumeReadOnly) == nil
}
