package fakedriver

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
)

// attributesOfFile is struct fsxattr of linux/fs.h.
type attributesOfFile struct {
	flags, extentSize, extents, project, cowExtentSize uint32
	_                                                  [8]byte
}

// limits is struct fs_disk_quota of linux/dqblk_xfs.h. Blocks are of 512 bytes.
type limits struct {
	version, kind                                  int8
	fields                                         uint16
	id                                             uint32
	hardBlocks, softBlocks, hardInodes, softInodes uint64
	blocks, inodes                                 uint64
	inodeTimer, blockTimer                         int32
	inodeWarnings, blockWarnings                   uint16
	_                                              [4]byte
	hardRealTime, softRealTime, realTime, _, _     uint64
}

const (
	getAttributes  = 0x801c581f // FS_IOC_FSGETXATTR
	setAttributes  = 0x401c5820 // FS_IOC_FSSETXATTR
	inheritProject = 0x200      // FS_XFLAG_PROJINHERIT
	setLimits      = 'X'<<8 + 4 // Q_XSETQLIM
	ofProjects     = 2          // PRJQUOTA
	blockSize      = 512
	hardInodes     = 1 << 1 // FS_DQ_IHARD
	hardBlocks     = 1 << 3 // FS_DQ_BHARD
)

// limit gives a data directory that is new a project, with the limits that its pod asks for.
func (r *run) limit(data string, asked volume.Size) error {
	if !r.cfg.Quotas || r.cfg.Bug == LimitsNothing || asked == (volume.Size{}) {
		return nil
	}
	dir, err := os.Open(data)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	defer dir.Close()
	var attributes attributesOfFile
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), getAttributes, uintptr(unsafe.Pointer(&attributes))); e != 0 {
		return fmt.Errorf("read the project of %s: %w", data, e)
	}
	if attributes.project != 0 {
		return nil
	}
	r.Driver.mu.Lock()
	r.projects++
	id := r.projects
	r.Driver.mu.Unlock()
	attributes.project, attributes.flags = id, attributes.flags|inheritProject
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), setAttributes, uintptr(unsafe.Pointer(&attributes))); e != 0 {
		return fmt.Errorf("set the project of %s: %w", data, e)
	}
	part := int64(1)
	if r.cfg.Bug == LimitsTooMuch {
		part = 10
	}
	q := limits{version: 1, kind: 2, fields: hardBlocks | hardInodes, id: id,
		hardBlocks: uint64(asked.Bytes / blockSize / part), hardInodes: uint64(asked.Inodes / part)}
	const command = setLimits<<8 | ofProjects
	if _, _, e := unix.Syscall6(unix.SYS_QUOTACTL_FD, dir.Fd(), command, uintptr(id), uintptr(unsafe.Pointer(&q)), 0, 0); e != 0 {
		return fmt.Errorf("limit project %d: %w", id, e)
	}
	return nil
}
