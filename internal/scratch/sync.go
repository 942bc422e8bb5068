package scratch

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// xfsFreeEOFBlocks is the ioctl XFS_IOC_FREE_EOFBLOCKS.
const xfsFreeEOFBlocks = 0x8080583a

// eofBlocks is struct xfs_fs_eofblocks; all that is 0 means all files.
type eofBlocks struct {
	version, flags       uint32
	uid, gid, project, _ uint32
	minSize              uint64
	_                    [12]uint64
}

// Sync has space that was given back show in [Dir.Space]. Some file systems
// count it as free only later: btrfs once the deletion is written down, XFS once
// a worker of the kernel has come to it.
func (d *Dir) Sync() error {
	if d.syncXFS() {
		return nil
	}
	if err := ignoreEINTR(func() error { return unix.Syncfs(d.fd()) }); err != nil {
		return fmt.Errorf("sync the file system of %s: %w", d.root, err)
	}
	return nil
}

// syncXFS waits for that worker, which nothing else does: also syncfs(2) does
// not. On the way XFS takes back what it set aside behind the ends of files that
// grow, which on a full disk is welcome. It tells whether it could.
func (d *Dir) syncXFS() bool {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(d.fd(), &fs); err != nil || fs.Type != unix.XFS_SUPER_MAGIC {
		return false
	}
	all := eofBlocks{version: 1}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.fd()), xfsFreeEOFBlocks, uintptr(unsafe.Pointer(&all)))
	return errno == 0
}
