package kernel

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// SetFlags sets the flags of an open file (FS_IOC_SETFLAGS, as chattr does).
func SetFlags(fd int, flags uint32) error {
	return do("SetFlags", object{dir: fd}, func() error {
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags))
	})
}

// XAttr is struct fsxattr.
type XAttr struct {
	XFlags, ExtentSize, Extents, Project, CowSize uint32
	_                                             [8]byte
}

// GetXAttr reads the attributes of an open file, its project among them.
func GetXAttr(fd int) (attr XAttr, err error) {
	const get = 0x801c581f // FS_IOC_FSGETXATTR
	err = ioctl(fd, get, unsafe.Pointer(&attr))
	return attr, err
}

// SetXAttr sets the attributes of an open file, its project among them.
func SetXAttr(fd int, attr XAttr) error {
	const set = 0x401c5820 // FS_IOC_FSSETXATTR
	return do("SetXAttr", object{dir: fd}, func() error { return ioctl(fd, set, unsafe.Pointer(&attr)) })
}

// SubvolumeReadOnly is the flag of a btrfs subvolume that refuses writes.
const SubvolumeReadOnly = 1 << 1

// GetSubvolumeFlags reads the flags of a btrfs subvolume, whose top directory fd is. The numbers of
// the call are those of amd64 and arm64; elsewhere the kernel knows no such call.
func GetSubvolumeFlags(fd int) (flags uint64, err error) {
	const get = 0x80089419 // BTRFS_IOC_SUBVOL_GETFLAGS
	err = ioctl(fd, get, unsafe.Pointer(&flags))
	return flags, err
}

// SetSubvolumeFlags sets the flags of a btrfs subvolume, whose top directory fd is.
func SetSubvolumeFlags(fd int, flags uint64) error {
	const set = 0x4008941a // BTRFS_IOC_SUBVOL_SETFLAGS
	return do("SetSubvolumeFlags", object{dir: fd}, func() error { return ioctl(fd, set, unsafe.Pointer(&flags)) })
}

// FileAttr is struct file_attr.
type FileAttr struct {
	XFlags                                uint64
	ExtentSize, Extents, Project, CowSize uint32
}

// FileGetattr is file_getattr(2), which takes a handle that was opened with O_PATH.
func FileGetattr(fd int) (attr FileAttr, err error) {
	err = fileAttr(unix.SYS_FILE_GETATTR, fd, &attr)
	return attr, err
}

// FileSetattr is file_setattr(2), which takes a handle that was opened with O_PATH.
func FileSetattr(fd int, attr FileAttr) error {
	return do("FileSetattr", object{dir: fd}, func() error { return fileAttr(unix.SYS_FILE_SETATTR, fd, &attr) })
}

func fileAttr(number uintptr, fd int, attr *FileAttr) error {
	var empty byte
	_, _, errno := unix.Syscall6(number, uintptr(fd), uintptr(unsafe.Pointer(&empty)),
		uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr), unix.AT_EMPTY_PATH, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Fsetxattr is fsetxattr(2): it sets an extended attribute.
func Fsetxattr(fd int, name string, value []byte) error {
	return do("Fsetxattr", object{dir: fd}, func() error { return unix.Fsetxattr(fd, name, value, 0) })
}

// FreeEOFBlocks makes XFS take back what it set aside behind the ends of files that grow. It waits
// for the worker of the kernel that counts what was removed.
func FreeEOFBlocks(fd int) error {
	const free = 0x8080583a // XFS_IOC_FREE_EOFBLOCKS
	// This is struct xfs_fs_eofblocks; what is 0 means all files.
	all := struct {
		version, flags       uint32
		uid, gid, project, _ uint32
		minSize              uint64
		_                    [12]uint64
	}{version: 1}
	return ioctl(fd, free, unsafe.Pointer(&all))
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}
