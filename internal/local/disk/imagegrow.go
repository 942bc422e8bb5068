package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/katbox/katbox/internal/attach"
	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/local"
	"github.com/katbox/katbox/internal/logkeys"
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
		err = i.tools.GrowUnmounted(ctx, l.path())
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

// fitsDevice tells whether an ext4 is as large as its device: to ask the kernel to grow it takes a capability.
func fitsDevice(l *loop, fsType string) (bool, error) {
	if fsType != "ext4" {
		return false, nil
	}
	size, err := l.Seek(0, io.SeekEnd)
	if err != nil {
		return false, fmt.Errorf("size of %s: %w", l.name, err)
	}
	// From the kernel's memory: of a file system that is mounted, the disk may be behind.
	const superblock, logBlockSize, blocks, blocksHigh = 1024, 0x18, 0x4, 0x150
	block := make([]byte, 1024)
	if _, err := l.ReadAt(block, superblock); err != nil {
		return false, fmt.Errorf("read the superblock on %s: %w", l.name, err)
	}
	blockSize := int64(1024) << (binary.LittleEndian.Uint32(block[logBlockSize:]) & 0x1f)
	count := int64(binary.LittleEndian.Uint32(block[blocks:])) | int64(binary.LittleEndian.Uint32(block[blocksHigh:]))<<32
	return count >= size/blockSize, nil
}
