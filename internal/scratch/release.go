package scratch

import (
	"errors"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// fixed are the flags of an inode (chattr +i and +a) that have a removal
	// refused, to root as well.
	fixed = 0x10 | 0x20
	// fixedX are the same in the words of file_setattr(2).
	fixedX = 0x08 | 0x10

	// The ioctls of a btrfs subvolume's flags, a number of 64 bits. They are so
	// on amd64 and arm64; where they are not, the kernel knows no such call.
	btrfsGetFlags = 0x80089419
	btrfsSetFlags = 0x4008941a
	btrfsReadOnly = 1 << 1
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
	err := ignoreEINTR(func() error {
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
	var attr fileAttr
	if !attr.call(unix.SYS_FILE_GETATTR, fd) || attr.xflags&fixedX == 0 {
		return false
	}
	attr.xflags &^= fixedX
	return attr.call(unix.SYS_FILE_SETATTR, fd)
}

// fileAttr is struct file_attr of file_getattr(2) and file_setattr(2).
type fileAttr struct {
	xflags                                uint64
	extentSize, extents, project, cowSize uint32
}

func (a *fileAttr) call(number uintptr, fd int) bool {
	var empty byte
	_, _, errno := unix.Syscall6(number, uintptr(fd), uintptr(unsafe.Pointer(&empty)),
		uintptr(unsafe.Pointer(a)), unsafe.Sizeof(*a), unix.AT_EMPTY_PATH, 0)
	return errno == 0
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
	return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags&^fixed)) == nil
}

// makeWritable makes the read-only subvolume of btrfs writable whose top
// directory is open, and tells whether it was one.
func makeWritable(fd int) bool {
	var flags uint64
	if !ioctl64(fd, btrfsGetFlags, &flags) || flags&btrfsReadOnly == 0 {
		return false
	}
	flags &^= btrfsReadOnly
	return ioctl64(fd, btrfsSetFlags, &flags)
}

func ioctl64(fd int, request uintptr, value *uint64) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(value)))
	return errno == 0
}
