package disk

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/host"
)

// Grow makes the file system that is mounted at path as large as its device, and returns the size of the device in
// bytes. One that is as large already stays as it is: Grow is for each volume that is mounted to be written to,
// since a clone, or a restored snapshot, may be on a device that is larger than its origin's.
//
// The error is volume.ErrNotFound if nothing is mounted there. ext4 needs CAP_SYS_RESOURCE,
// and no errors.
func (t Tools) Grow(path string) (int64, error) {
	size, err := grow(path)
	return size, wrap(err, "grow the file system at %s", path)
}

// GrowUnmounted makes an ext4 that is mounted nowhere as large as its device, with resize2fs of the host: for that the
// kernel asks for no capability. It is checked before, and the end of ctx breaks off nothing but that check.
func (t Tools) GrowUnmounted(ctx context.Context, dev string) error {
	doing := "grow the file system on " + dev
	if err := t.sameNode(dev); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := t.fsck(ctx, dev, host.Program{Name: "e2fsck", Args: []string{"-f", "-p", dev}}); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	_, err := t.host().Run(context.WithoutCancel(ctx), host.Program{Name: "resize2fs", Args: []string{dev}})
	return wrap(err, "%s", doing)
}

func grow(path string) (int64, error) {
	dir, err := kernel.Openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return 0, fmt.Errorf("open it: %w", err)
	}
	defer unix.Close(dir)
	there, err := attach.LookOpen(dir)
	if err == nil && !there.Mounted {
		err = fmt.Errorf("%w: nothing is mounted there", volume.ErrNotFound)
	}
	if err != nil {
		return 0, err
	}
	st, err := kernel.Fstatfs(dir)
	if err != nil {
		return 0, err
	}
	if st.Type != unix.EXT4_SUPER_MAGIC && st.Type != unix.XFS_SUPER_MAGIC {
		return 0, fmt.Errorf("%w: it is neither %s nor %s", attach.ErrNotOurs, ext4, xfs)
	}
	size, err := deviceSize(there.Device)
	if err != nil {
		return 0, err
	}
	if st.Type == unix.XFS_SUPER_MAGIC {
		err = growXFS(dir, size)
	} else {
		// The kernel does nothing for the size that it has. What statfs calls blocks are fewer.
		err = growExt4(dir, uint64(size)/uint64(st.Bsize))
	}
	if errors.Is(err, unix.EROFS) {
		err = fmt.Errorf("it is mounted read-only: %w", err)
	}
	return size, err
}

func growXFS(fd int, size int64) error {
	geometry, err := kernel.GetXFSGeometry(fd)
	if err != nil {
		return err
	}
	blocks := uint64(size) / uint64(geometry.BlockSize)
	if blocks <= geometry.DataBlocks {
		return nil
	}
	return kernel.GrowXFS(fd, blocks, geometry.InodePercent)
}

func growExt4(fd int, blocks uint64) error {
	err := kernel.GrowExt4(fd, blocks)
	if errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("the daemon lacks the capability CAP_SYS_RESOURCE, or the file system has errors, which fsck corrects when no pod "+
			"uses the volume: %w", err)
	}
	return err
}

// at returns what is mounted at a path, and volume.ErrNotFound if that is nothing.
func at(path string) (attach.Mount, error) {
	table, err := attach.Table()
	if err != nil {
		return attach.Mount{}, err
	}
	there, ok := attach.At(table, path)
	if !ok {
		return attach.Mount{}, fmt.Errorf("%w: nothing is mounted there", volume.ErrNotFound)
	}
	return there, nil
}

// deviceSize returns the size of a device in bytes, as the kernel knows it. It does not ask the device.
func deviceSize(number uint64) (int64, error) {
	const sector = 512
	path := fmt.Sprintf("/sys/dev/block/%d:%d/size", unix.Major(number), unix.Minor(number))
	const most = 100
	content, err := kernel.ReadFile(unix.AT_FDCWD, path, 0, most)
	if err != nil {
		return 0, err
	}
	sectors, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return sectors * sector, nil
}
