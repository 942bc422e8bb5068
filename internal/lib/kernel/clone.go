package kernel

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

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

// CloneRange is [Clone] of one part of a file, which has the same place in the other one.
func CloneRange(to, from int, start, length int64) error {
	const cloneRange = 0x4020940d // FICLONERANGE
	arguments := struct {
		from                  int64
		start, length, target uint64
	}{int64(from), uint64(start), uint64(length), uint64(start)}
	return do("CloneRange", object{dir: to}, func() error { return ioctl(to, cloneRange, unsafe.Pointer(&arguments)) })
}

// Extent is a part of a file, and where on the disk it is; Disk is negative where the file system does not say.
type Extent struct{ Start, Length, Disk int64 }

// Extents returns the parts of a file between two offsets that were written to: those of the first most extents. upTo is
// how far it has looked. What was written before the call is among them (FIEMAP).
func Extents(fd int, start, end int64, most int) (extents []Extent, upTo int64, err error) {
	const request, wait, unwritten = 0xc020660b, 1, 0x800 // FS_IOC_FIEMAP, FIEMAP_FLAG_SYNC, FIEMAP_EXTENT_UNWRITTEN
	const harmless = 0x3001                               // FIEMAP_EXTENT_LAST, MERGED, SHARED
	// These are struct fiemap and struct fiemap_extent.
	type head struct {
		start, length           uint64
		flags, mapped, count, _ uint32
	}
	type one struct {
		logical, physical, length uint64
		_                         [2]uint64
		flags                     uint32
		_                         [3]uint32
	}
	const headSize, oneSize = unsafe.Sizeof(head{}), unsafe.Sizeof(one{})
	memory := make([]uint64, (headSize+uintptr(most)*oneSize)/unsafe.Sizeof(uint64(0)))
	h := (*head)(unsafe.Pointer(&memory[0]))
	*h = head{start: uint64(start), length: uint64(end - start), flags: wait, count: uint32(most)}
	if err := IgnoreEINTR(func() error { return ioctl(fd, request, unsafe.Pointer(h)) }); err != nil {
		return nil, 0, err
	}
	found := unsafe.Slice((*one)(unsafe.Pointer(&memory[headSize/unsafe.Sizeof(uint64(0))])), most)[:h.mapped]
	upTo = end
	if len(found) == most {
		last := found[most-1]
		upTo = min(end, int64(last.logical+last.length))
		if upTo <= start {
			return nil, 0, unix.EOPNOTSUPP
		}
	}
	for _, f := range found {
		if f.flags&unwritten != 0 {
			continue
		}
		e := Extent{Start: int64(f.logical), Length: int64(f.length), Disk: int64(f.physical)}
		if before := start - e.Start; before > 0 {
			e.Start, e.Length, e.Disk = start, e.Length-before, e.Disk+before
		}
		e.Length = min(e.Length, upTo-e.Start)
		if f.flags&^harmless != 0 {
			e.Disk = -1
		}
		if e.Length > 0 {
			extents = append(extents, e)
		}
	}
	return extents, upTo, nil
}
