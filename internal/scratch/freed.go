package scratch

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/volume"
)

// SpaceAfterErase is [Dir.Space] after something was erased. before is what was
// measured last. Some file systems count what was given back as free only later,
// btrfs bytes and XFS inodes; where that may be so, it is brought about:
// otherwise the next volume would go for the space of the last one.
func (d *Dir) SpaceAfterErase(before volume.Space) (volume.Space, error) {
	if d.settleXFS() {
		return d.Space()
	}
	after, err := d.Space()
	if err != nil || showsMore(before, after) {
		return after, err
	}
	if err := d.sync(); err != nil {
		return after, err
	}
	return d.Space()
}

// showsMore reports whether both bytes and inodes have come free.
func showsMore(before, after volume.Space) bool {
	return after.Free.Bytes > before.Free.Bytes && (after.Total.Inodes == 0 || after.Free.Inodes > before.Free.Inodes)
}

// sync has the file system write down what is pending.
func (d *Dir) sync() error {
	if err := kernel.Syncfs(d.fd()); err != nil {
		return fmt.Errorf("sync the file system of %s: %w", d.root, err)
	}
	return nil
}

// settleXFS waits for a worker of the kernel that counts what was removed, which
// nothing else does: also syncfs(2) does not. Before that a part of it shows, so
// that nobody can see whether to wait. On the way XFS takes back what it set aside
// behind the ends of files that grow, which on a full disk is welcome. It tells
// whether this is XFS.
func (d *Dir) settleXFS() bool {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(d.fd(), &fs); err != nil || fs.Type != unix.XFS_SUPER_MAGIC {
		return false
	}
	return kernel.FreeEOFBlocks(d.fd()) == nil
}
