package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/quota"
)

// Space returns the room on the working directory's file system. With a quota on the directory (a project quota) that is
// the quota's, and the disk's too if [Dir.SetBeside] was called.
func (d *Dir) Space() (volume.Space, error) {
	st, err := kernel.Fstatfs(d.fd())
	if err != nil {
		return volume.Space{}, fmt.Errorf("statfs %s: %w", d.root, err)
	}
	own := spaceOf(st)
	if d.beside == "" {
		return own, nil
	}
	st, err = kernel.Statfs(d.beside)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return own, nil // the kubelet has not made it yet
	case err != nil:
		return volume.Space{}, fmt.Errorf("statfs %s: %w", d.beside, err)
	}
	if disk := spaceOf(st); disk.Total != own.Total {
		own.DiskTotal, own.DiskFree = disk.Total, disk.Free
	}
	return own, nil
}

// SetBeside names a directory on the file system of the working directory that the kubelet measures in its place.
// It is to be called before others use the Dir.
func (d *Dir) SetBeside(path string) { d.beside = path }

func spaceOf(st unix.Statfs_t) volume.Space {
	// f_blocks and f_bavail count fragments; old FUSE servers do not set the fragment's size.
	unit := uint64(st.Frsize)
	if unit == 0 {
		unit = uint64(st.Bsize)
	}
	return volume.Space{Total: sizeOf(st.Blocks*unit, st.Files), Free: sizeOf(st.Bavail*unit, st.Ffree)}
}

// Quotas detects what the working directory's file system does about project quotas. What it returns
// works until the Dir is closed.
func (d *Dir) Quotas() *quota.FileSystem { return quota.Detect(d.fd()) }

// sizeOf limits the numbers to int64: some file systems without a limit set all bits.
func sizeOf(bytes, inodes uint64) volume.Size {
	return volume.Size{Bytes: int64(min(bytes, math.MaxInt64)), Inodes: int64(min(inodes, math.MaxInt64))}
}

// SpaceAfterErase is [Dir.Space] after something was erased. before is the last measurement. It
// makes file systems count the freed space that do so only later (btrfs bytes, XFS inodes):
// otherwise the next volume would be evicted for the space that the last one has freed. No other one
// is synced for that: while pods write, a sync takes seconds.
func (d *Dir) SpaceAfterErase(before volume.Space) (volume.Space, error) {
	if d.countsAtOnce() || d.settleXFS() {
		return d.Space()
	}
	after, err := d.Space()
	if err != nil || showsMore(before, after) {
		return after, err
	}
	if err := kernel.Syncfs(d.fd()); err != nil {
		return after, fmt.Errorf("sync the file system of %s: %w", d.root, err)
	}
	return d.Space()
}

// showsMore reports whether both bytes and inodes were freed.
func showsMore(before, after volume.Space) bool {
	return after.Free.Bytes > before.Free.Bytes && (after.Total.Inodes == 0 || after.Free.Inodes > before.Free.Inodes)
}

// countsAtOnce reports whether the file system is known to count what was removed at once.
func (d *Dir) countsAtOnce() bool {
	fs, err := kernel.Fstatfs(d.fd())
	return err == nil && (fs.Type == unix.EXT4_SUPER_MAGIC || fs.Type == unix.TMPFS_MAGIC)
}

// settleXFS waits for the worker of the kernel that counts what was removed; syncfs(2) does not
// wait for it. Until then the space shows in part, so it cannot tell whether to wait. settleXFS
// reports whether this is XFS.
func (d *Dir) settleXFS() bool {
	if fs, err := kernel.Fstatfs(d.fd()); err != nil || fs.Type != unix.XFS_SUPER_MAGIC {
		return false
	}
	return kernel.FreeEOFBlocks(d.fd()) == nil
}
