package kernel

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Quotas is how to ask the kernel about the quotas of a file system.
type Quotas struct {
	// FD is an open file or directory on it.
	FD int
	// Device is the path of the file system's block device, for kernels that lack quotactl_fd(2)
	// (before Linux 5.14); empty to use that.
	Device string
}

// ProjectQuota is struct fs_disk_quota. Bytes count in units of 512.
type ProjectQuota struct {
	Version, Flags                                              int8
	Fields                                                      uint16
	ID                                                          uint32
	HardBytes, SoftBytes, HardInodes, SoftInodes, Bytes, Inodes uint64
	InodeTimer, ByteTimer                                       int32
	InodeWarnings, ByteWarnings                                 uint16
	InodeTimerHigh, ByteTimerHigh, RealtimeTimerHigh, _         int8
	HardRealtime, SoftRealtime, Realtime                        uint64
	RealtimeTimer                                               int32
	RealtimeWarnings                                            uint16
	_                                                           int16
	_                                                           [8]byte
}

const (
	// ProjectsCounted is the flag of [QuotaFlags] of a file system that counts what projects use.
	ProjectsCounted = 1 << 4
	// ProjectsLimited is the flag of one that enforces their limits.
	ProjectsLimited = 1 << 5

	projectQuotas = 2 // PRJQUOTA
	// The commands of quotactl(2) in the numbers of XFS, which ext4 understands too.
	getFlags = 0x5808 // Q_XGETQSTATV
	getQuota = 0x5803 // Q_XGETQUOTA
	getNext  = 0x5809 // Q_XGETNEXTQUOTA
	setLimit = 0x5804 // Q_XSETQLIM
	turnOn   = 0x5801 // Q_XQUOTAON

	softInodes, hardInodes, softBytes, hardBytes = 1 << 0, 1 << 1, 1 << 2, 1 << 3 // FS_DQ_ISOFT, IHARD, BSOFT, BHARD
)

// QuotaFlags reports whether the file system counts what projects use, and limits it.
func QuotaFlags(q Quotas) (flags uint16, err error) {
	// This is struct fs_quota_statv, which is shorter.
	var state struct {
		version, _ uint8
		flags      uint16
		_          [63]uint32
	}
	state.version = 1
	err = q.ctl(getFlags, 0, unsafe.Pointer(&state))
	return state.flags, err
}

// GetQuota reads what a project uses, and its limits. XFS answers ENOENT for a project that it has
// never counted, ext4 with zeros.
func GetQuota(q Quotas, id uint32) (quota ProjectQuota, err error) {
	err = q.ctl(getQuota, id, unsafe.Pointer(&quota))
	return quota, err
}

// NextQuota is GetQuota of the first project with that ID or a higher one that the file system has
// counted. ENOENT means that there is none.
func NextQuota(q Quotas, id uint32) (quota ProjectQuota, err error) {
	err = q.ctl(getNext, id, unsafe.Pointer(&quota))
	return quota, err
}

// SetLimit sets the hard limits of a project: units of 512 bytes, and inodes. Zero is no limit. Soft limits are taken
// away.
func SetLimit(q Quotas, id uint32, units, inodes uint64) error {
	const project = 2 // FS_PROJ_QUOTA
	quota := ProjectQuota{Version: 1, Flags: project, Fields: softInodes | hardInodes | softBytes | hardBytes, ID: id,
		HardBytes: units, HardInodes: inodes}
	return do("SetLimit", object{dir: q.FD}, func() error { return q.ctl(setLimit, id, unsafe.Pointer(&quota)) })
}

// LimitProjects makes a file system that counts what projects use enforce their limits, after a program has turned that
// off.
func LimitProjects(q Quotas) error {
	flags := uint32(ProjectsLimited)
	return do("LimitProjects", object{dir: q.FD}, func() error { return q.ctl(turnOn, 0, unsafe.Pointer(&flags)) })
}

func (q Quotas) ctl(command uintptr, id uint32, argument unsafe.Pointer) error {
	command = command<<8 | projectQuotas
	return IgnoreEINTR(func() error {
		var errno unix.Errno
		if q.Device == "" {
			_, _, errno = unix.Syscall6(unix.SYS_QUOTACTL_FD, uintptr(q.FD), command, uintptr(id), uintptr(argument), 0, 0)
		} else {
			device, err := unix.BytePtrFromString(q.Device)
			if err != nil {
				return err
			}
			_, _, errno = unix.Syscall6(unix.SYS_QUOTACTL, command, uintptr(unsafe.Pointer(device)), uintptr(id), uintptr(argument), 0, 0)
		}
		if errno != 0 {
			return errno
		}
		return nil
	})
}

// MakeBlockDevice makes the node of a block device (mknod(2)).
func MakeBlockDevice(path string, device uint64) error {
	return do("MakeBlockDevice", at(path), func() error { return unix.Mknod(path, unix.S_IFBLK|0o600, int(device)) })
}
