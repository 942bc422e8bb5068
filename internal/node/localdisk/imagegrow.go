package localdisk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/node/attach"
)

func (i *images) grow(r local.Record, _ uint32) error {
	image, err := i.openImage(r, os.O_RDWR)
	if err != nil {
		return err
	}
	defer image.Close()
	if err := i.enlarge(r, image); err != nil {
		return err
	}
	loops, err := loopsOf(image, i.suffix(r))
	if err != nil {
		return err
	}
	defer closeLoops(loops)
	for _, l := range loops {
		if err := kernel.LoopResize(int(l.Fd())); err != nil {
			return fmt.Errorf("make %s as large as its file: %w", l.name, err)
		}
	}
	if len(loops) == 0 || r.Block {
		return nil
	}
	table, err := attach.Table()
	if err != nil {
		return err
	}
	for _, m := range table {
		at := slices.IndexFunc(loops, func(l *loop) bool { return l.number == m.Device })
		if at >= 0 && !m.ReadOnly {
			return i.growMounted(loops[at], fsTypeOf(r), m.Target)
		}
	}
	// The next stage comes here again.
	return nil
}

// enlarge sets aside what an image lacks of the size in its record.
func (i *images) enlarge(r local.Record, image *os.File) error {
	st, err := kernel.Fstat(int(image.Fd()))
	if err != nil || st.Size >= r.Size {
		return err
	}
	// The blocks before are there: see setAside.
	err = kernel.Fallocate(int(image.Fd()), 0, st.Size, r.Size-st.Size)
	if err != nil {
		// Some file systems keep what they found before the room was over. Nothing has seen it yet.
		return errors.Join(fmt.Errorf("set the blocks of the volume aside: %w", err), kernel.Truncate(image, st.Size))
	}
	return kernel.Sync(image)
}

// growUnmounted makes an ext4 as large as its image before it is mounted: the kernel may refuse that later. A failure is
// logged, and the volume used as it is.
func (i *images) growUnmounted(ctx context.Context, r local.Record, l *loop) {
	fsType := fsTypeOf(r)
	if fsType != "ext4" {
		return
	}
	fits, err := fitsDevice(l, fsType)
	if err == nil && !fits {
		err = i.about(r, l, i.toolsFor(r).GrowUnmounted(ctx, l.path()))
	}
	if err != nil {
		i.Log.Error(err, "cannot grow the file system of a volume before it is mounted", logkeys.Volume, r.Name)
	}
}

// growMounted makes the file system of a loop device as large as that, where it is mounted.
func (i *images) growMounted(l *loop, fsType, path string) error {
	if fits, err := fitsDevice(l, fsType); err != nil || fits {
		return err
	}
	_, err := i.tools.Grow(path)
	return err
}

// fitsDevice reports whether an ext4 is as large as its device: to ask the kernel to grow it takes a capability.
func fitsDevice(l *loop, fsType string) (bool, error) {
	if fsType != "ext4" {
		return false, nil
	}
	size, err := l.Seek(0, io.SeekEnd)
	if err != nil {
		return false, fmt.Errorf("size of %s: %w", l.name, err)
	}
	// From the kernel's memory: of a file system that is mounted, the disk may be behind.
	const superblock = 1024
	block := make([]byte, 1024)
	if _, err := l.ReadAt(block, superblock); err != nil {
		return false, fmt.Errorf("read the superblock on %s: %w", l.name, err)
	}
	return fillsDevice(block, size), nil
}

// fillsDevice tells by the superblock of an ext4 whether it is as large as it can be on a device of a size. mke2fs and
// resize2fs leave out a last group with room for little more than its own tables (lib/ext2fs/initialize.c, "rem <
// overhead+50"), so some are smaller than their device for good.
func fillsDevice(superblock []byte, size int64) bool {
	u16 := func(at int) int64 { return int64(binary.LittleEndian.Uint16(superblock[at:])) }
	u32 := func(at int) int64 { return int64(binary.LittleEndian.Uint32(superblock[at:])) }
	blockSize := int64(1024) << (u32(0x18) & 0x1f)
	count, perGroup := u32(0x4)|u32(0x150)<<32, u32(0x20)
	rest, before := size/blockSize-count, count-u32(0x14)
	if rest <= 0 || perGroup == 0 || before%perGroup != 0 {
		return rest <= 0
	}
	group := before / perGroup // the one that is left out
	overhead := 2 + u32(0x28)*u16(0x58)/blockSize
	if hasSuperblock(group) {
		descriptors := (group + 1) * max(u16(0xfe), 32)
		overhead += 1 + (descriptors+blockSize-1)/blockSize + u16(0xce)
	}
	const spare = 50
	return rest < overhead+spare
}

// hasSuperblock reports whether a group has a copy of the superblock: 0, 1, and the powers of 3, 5 and 7 have one.
func hasSuperblock(group int64) bool {
	for _, base := range []int64{3, 5, 7} {
		power := base
		for power < group {
			power *= base
		}
		if power == group {
			return true
		}
	}
	return group <= 1
}
