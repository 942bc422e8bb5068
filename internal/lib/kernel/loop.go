package kernel

import "unsafe"

// The flags of a loop device.
const (
	// LoopReadOnly: the device refuses writes.
	LoopReadOnly = 1
	// LoopAutoclear: the device lets its file go when the last handle of it is closed. A mount is one.
	LoopAutoclear = 4
	// LoopDirectIO: the device reads and writes its file past the page cache.
	LoopDirectIO = 16
)

// LoopAdd makes the loop device of a number, which has no file. The error is EEXIST where there is one. control is
// /dev/loop-control.
func LoopAdd(control, number int) error {
	const add = 0x4c80 // LOOP_CTL_ADD
	return do("LoopAdd", object{dir: control}, func() error { return ioctlNumber(control, add, uintptr(number)) })
}

// loopInfo is struct loop_info64.
type loopInfo struct {
	device, inode, rdevice, offset, sizeLimit uint64
	number, encryptType, keySize, flags       uint32
	fileName, cryptName                       [64]byte
	key                                       [32]byte
	init                                      [2]uint64
}

// LoopConfigure gives a loop device that has none a file, with blocks of blockSize bytes. The error is EBUSY where
// it has one. It needs Linux 5.8.
func LoopConfigure(loop, file int, flags, blockSize uint32) error {
	const configure = 0x4c0a // LOOP_CONFIGURE
	// This is struct loop_config.
	config := struct {
		fd, blockSize uint32
		info          loopInfo
		_             [8]uint64
	}{fd: uint32(file), blockSize: blockSize, info: loopInfo{flags: flags}}
	return do("LoopConfigure", object{dir: loop}, func() error { return ioctl(loop, configure, unsafe.Pointer(&config)) })
}

// LoopFile is what a loop device has.
type LoopFile struct {
	// Device and Inode are those of the file, as in stat(2).
	Device, Inode uint64
	Flags         uint32
}

// LoopStatus reads what a loop device has. The error is ENXIO where it has no file.
func LoopStatus(loop int) (LoopFile, error) {
	const status = 0x4c05 // LOOP_GET_STATUS64
	var info loopInfo
	err := IgnoreEINTR(func() error { return ioctl(loop, status, unsafe.Pointer(&info)) })
	return LoopFile{Device: info.device, Inode: info.inode, Flags: info.flags}, err
}

// LoopResize makes a loop device as large as its file has become.
func LoopResize(loop int) error {
	const setCapacity = 0x4c07 // LOOP_SET_CAPACITY
	return do("LoopResize", object{dir: loop}, func() error { return ioctlNumber(loop, setCapacity, 0) })
}

// LoopClear makes a loop device let its file go: at once, or when the last other handle of it is closed.
func LoopClear(loop int) error {
	const clear = 0x4c01 // LOOP_CLR_FD
	return do("LoopClear", object{dir: loop}, func() error { return ioctlNumber(loop, clear, 0) })
}
