package scratch

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestDeletionIsDurable: what was deleted is not back after a power cut.
func TestDeletionIsDurable(t *testing.T) {
	deletions := map[string]func(t *testing.T, d *Dir){
		"trash": func(t *testing.T, d *Dir) {
			discard(t, d, here)
			must(t, d.SyncTrash())
		},
		"resumed": func(t *testing.T, d *Dir) {
			// As by a process that ended before it could sync.
			must(t, os.RemoveAll(d.Path(here)))
			must(t, d.EraseInPlace(context.Background(), here, nil))
		},
		"in place": func(t *testing.T, d *Dir) {
			must(t, d.EraseInPlace(context.Background(), here, nil))
		},
	}
	for fstype, size := range map[string]int{"ext4": 64, "xfs": 300} {
		for name, deletion := range deletions {
			t.Run(fstype+", "+name, func(t *testing.T) {
				mnt := roottest.FileSystem(t, fstype, size)
				d, err := Open(filepath.Join(mnt, "work"))
				must(t, err)
				path := create(t, d, here)
				must(t, os.WriteFile(filepath.Join(path, "file"), nil, 0o600))
				settle(t, d)
				deletion(t, d)
				cutPower(t, mnt, fstype, d)
				if exists(path) {
					t.Errorf("%s is back", path)
				}
			})
		}
	}
}

// cutPower has a file system lose all that is not on disk, and mounts it again.
func cutPower(t *testing.T, mnt, fstype string, d *Dir) {
	t.Helper()
	// EXT4_IOC_SHUTDOWN, which is XFS_IOC_GOINGDOWN, and its flag not to write the journal before.
	const shutdown, withoutFlush = 0x8004587d, 2
	must(t, unix.IoctlSetPointerInt(d.fd(), shutdown, withoutFlush))
	must(t, d.Close())
	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(mnt))
	must(t, err)
	must(t, unix.Unmount(mnt, 0))
	must(t, unix.Mount(mounts[0].Source, mnt, fstype, 0, ""))
}
