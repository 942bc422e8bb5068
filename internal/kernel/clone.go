package kernel

import "golang.org/x/sys/unix"

// Clone makes a file have the content of another one on the same file system, which shares the blocks of both
// until one is written to (FICLONE). What is written to the other one meanwhile is in it wholly or not at all.
func Clone(to, from int) error {
	const clone = 0x40049409 // FICLONE
	return do("Clone", object{dir: to}, func() error { return ioctlNumber(to, clone, uintptr(from)) })
}

// Freeze makes the file system that fd is on whole on its disk, and all writers to it wait until [Thaw]: also when
// this process has ended. The error is EBUSY where it is frozen.
func Freeze(fd int) error {
	const freeze = 0xc0045877 // FIFREEZE
	return do("Freeze", object{dir: fd}, func() error { return ioctlNumber(fd, freeze, 0) })
}

// Thaw ends [Freeze]. The error is EINVAL where nothing is frozen.
func Thaw(fd int) error {
	const thaw = 0xc0045878 // FITHAW
	return do("Thaw", object{dir: fd}, func() error { return ioctlNumber(fd, thaw, 0) })
}

// ioctlNumber is ioctl(2) whose argument is a number.
func ioctlNumber(fd int, request, argument uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, argument); errno != 0 {
		return errno
	}
	return nil
}
