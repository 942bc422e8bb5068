package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/host"
)

// Format makes a file system, ext4 or xfs, on a device that is proven to be empty, see [Tools.Content]. Any other
// device is attach.ErrNotOurs, and one that is in use volume.ErrBusy. When ctx ends, what is half made stays.
func (t Tools) Format(ctx context.Context, dev, fsType string) error {
	if err := known(fsType); err != nil {
		return err
	}
	c, err := t.lookUnused(ctx, dev)
	if err == nil && c != (content{}) {
		err = fmt.Errorf("%w: %s is not empty, it holds %s", attach.ErrNotOurs, dev, c)
	}
	if err == nil {
		err = t.mkfs(ctx, dev, fsType, false)
	}
	return wrap(err, "make %s on %s", fsType, dev)
}

// Reformat ends what a Format began that a crash, or the end of its context, cut short: it makes the file system
// anew, and keeps one that is complete. It is for a device of which the caller knows that Format of the same type
// had begun on it. See the package's comment for what it makes anew; anything else is attach.ErrNotOurs.
func (t Tools) Reformat(ctx context.Context, dev, fsType string) error {
	if err := known(fsType); err != nil {
		return err
	}
	c, err := t.lookUnused(ctx, dev)
	complete := false
	switch {
	case err != nil:
	case c == content{} || c.unknown:
	case c.fsType == fsType:
		if complete, err = isComplete(dev, fsType); complete {
			return t.Check(ctx, dev, fsType)
		}
	default:
		err = fmt.Errorf("%w: %s holds %s", attach.ErrNotOurs, dev, c)
	}
	if err == nil {
		t.Log.Info("making a file system anew that an earlier attempt left half made", logkeys.Device, dev)
		err = t.mkfs(ctx, dev, fsType, true)
	}
	return wrap(err, "make %s on %s anew", fsType, dev)
}

// String says what is there.
func (c content) String() string {
	if c.strange != "" {
		return c.strange
	}
	return c.fsType
}

// lookUnused is look at a device that is neither mounted nor in use otherwise.
func (t Tools) lookUnused(ctx context.Context, dev string) (content, error) {
	// The kernel lends a device to one such handle at a time, and not while it is mounted.
	file, err := kernel.Open(dev, os.O_RDONLY|unix.O_EXCL)
	if errors.Is(err, unix.EBUSY) {
		err = fmt.Errorf("%w: %w", volume.ErrBusy, err)
	}
	if err != nil {
		return content{}, err
	}
	defer file.Close()
	return t.look(ctx, dev)
}

// mkfs runs the program that makes a file system, and which opens the device for itself alone.
func (t Tools) mkfs(ctx context.Context, dev, fsType string, force bool) error {
	_, err := t.host().Run(ctx, host.Program{Name: "mkfs." + fsType, Args: mkfsArgs(dev, fsType, force)})
	return err
}

func mkfsArgs(dev, fsType string, force bool) []string {
	switch {
	case fsType == ext4:
		// No blocks are kept for root: the volume is for pods. The inode tables are left to the kernel, which
		// writes them after the mount: those of a large disk take longer than a kubelet waits.
		return []string{"-F", "-q", "-m", "0", dev}
	case force:
		return []string{"-f", "-q", dev}
	}
	return []string{"-q", dev}
}

// isComplete reports whether mkfs ended well on a device where blkid finds its file system: the marks in the
// superblock that it writes last, or that only a later mount writes.
func isComplete(dev, fsType string) (bool, error) {
	file, err := kernel.Open(dev, os.O_RDONLY|unix.O_DIRECT)
	if err != nil {
		return false, err
	}
	defer file.Close()
	block := aligned(4096)
	if _, err := file.ReadAt(block, 0); err != nil {
		return false, err
	}
	if fsType == xfs {
		const inProgress = 126
		return block[inProgress] == 0, nil
	}
	const superblock, lastMounted, mounts = 1024, 0x2c, 0x34
	return binary.LittleEndian.Uint32(block[superblock+lastMounted:]) != 0 ||
		binary.LittleEndian.Uint16(block[superblock+mounts:]) != 0, nil
}

// wrap puts what was tried in front of an error. It returns nil for nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
