package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestOpenFilesKeepTheOthers: a process outside has the files of all retained volumes open, or another file
// shares their blocks, so that deleting them makes no room on a full disk. A few go; then that is said, and
// the others stay.
func TestOpenFilesKeepTheOthers(t *testing.T) {
	const size, volumes, each = 400, 10, 10 // MiB
	for name, fstype := range map[string]string{"open": "ext4", "open on xfs": "xfs", "shared blocks": "xfs"} {
		if roottest.LeftOut(fstype) {
			continue
		}
		t.Run(fmt.Sprintf("%.4s-%s", name, fstype), func(t *testing.T) {
			mnt := roottest.FileSystem(t, fstype, size)
			work := filepath.Join(mnt, "work")
			d := newDaemon(t, "--afterlifespan", "48h", "--workdir", work, "--headroom", "0.2", "--http-endpoint", httpEndpoint())
			roottest.UnmountBelowAtEnd(t, mnt)
			d.start()
			d.retain(volumes, each<<20)
			syncFS(t, mnt)
			for i := range volumes {
				payload := filepath.Join(work, podName(i), volumeID(i), "payload")
				if name == "shared blocks" {
					must(t, shareBlocks(payload, filepath.Join(mnt, fmt.Sprintf("copy-%d", i))))
					continue
				}
				f, err := os.Open(payload)
				must(t, err)
				t.Cleanup(func() { f.Close() })
			}
			d.asleep(func() { fill(t, filepath.Join(mnt, "filler")) })
			d.eventually("that it is said", func() bool { return d.metrics()["katbox_evictions_stopped"] == 1 })
			time.Sleep(2 * time.Second)
			left := 0
			for i := range volumes {
				if exists(filepath.Join(work, podName(i), volumeID(i))) {
					left++
				}
			}
			if left < volumes-3 || left == volumes {
				t.Errorf("%d of %d volumes are left, want all but three\n%s", left, volumes, d.stdout)
			}
			if lines := d.linesWith("deleting retained volumes makes no room, keeping the others: a process outside has their files open, " +
				"or something shares their blocks; trying one again after a while"); len(lines) != 1 {
				t.Errorf("lines %v, want one", lines)
			}
		})
	}
}

// shareBlocks makes a copy of a file that takes no room.
func shareBlocks(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	copied, err := os.Create(to)
	if err != nil {
		return err
	}
	defer copied.Close()
	return unix.IoctlFileClone(int(copied.Fd()), int(source.Fd()))
}
