package kernel

import "unsafe"

// XFSGeometry is struct xfs_fsop_geom_v1.
type XFSGeometry struct {
	BlockSize, RTExtentSize, AGBlocks, AGCount, LogBlocks, SectorSize, InodeSize, InodePercent uint32
	DataBlocks, RTBlocks, RTExtents, LogStart                                                  uint64
	UUID                                                                                       [16]byte
	StripeUnit, StripeWidth                                                                    uint32
	Version                                                                                    int32
	Flags, LogSectorSize, RTSectorSize, DirBlockSize                                           uint32
	_                                                                                          uint32
}

// GetXFSGeometry reads how large the parts of the XFS are that fd is on.
func GetXFSGeometry(fd int) (geometry XFSGeometry, err error) {
	const get = 0x80705864 // XFS_IOC_FSGEOMETRY_V1
	err = IgnoreEINTR(func() error { return ioctl(fd, get, unsafe.Pointer(&geometry)) })
	return geometry, err
}

// GrowXFS makes the XFS that fd is on as large as the given number of its blocks. inodePercent is how much
// of it inodes may take.
func GrowXFS(fd int, blocks uint64, inodePercent uint32) error {
	const grow = 0x4010586e // XFS_IOC_FSGROWFSDATA
	// This is struct xfs_growfs_data.
	size := struct {
		blocks          uint64
		inodePercent, _ uint32
	}{blocks: blocks, inodePercent: inodePercent}
	return do("GrowXFS", object{dir: fd}, func() error { return ioctl(fd, grow, unsafe.Pointer(&size)) })
}

// GrowExt4 makes the ext4 that fd is on as large as the given number of its blocks. It needs CAP_SYS_RESOURCE.
func GrowExt4(fd int, blocks uint64) error {
	const grow = 0x40086610 // EXT4_IOC_RESIZE_FS
	return do("GrowExt4", object{dir: fd}, func() error { return ioctl(fd, grow, unsafe.Pointer(&blocks)) })
}
