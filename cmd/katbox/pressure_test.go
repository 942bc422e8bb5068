package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestPressureOnARealFileSystem: on a full disk volumes go early whose lifespan is nowhere near its
// end, the oldest first, until the disk is above its floor, which a fast writer raises to the headroom at
// most, and no more.
func TestPressureOnARealFileSystem(t *testing.T) {
	const size, volumes, each = 400, 8, 25 // MiB
	const least, most = 3, 6               // for a floor of 60 MiB, and for a headroom of 120 and a little
	for _, fstype := range []string{"ext4", "xfs"} {
		t.Run(fstype, func(t *testing.T) {
			mnt := roottest.FileSystem(t, fstype, size)
			work := filepath.Join(mnt, "work")
			d := newDaemon(t, "--afterlifespan", "1h", "--pruneinterval", "100ms", "--workdir", work, "--headroom", "0.3")
			roottest.UnmountBelowAtEnd(t, mnt)
			there := func(i int) bool { return exists(filepath.Join(work, podName(i), volumeID(i))) }
			d.start()
			d.retain(volumes, each<<20)
			d.asleep(func() { fill(t, filepath.Join(mnt, "filler")) })
			d.eventually("room above the floor", func() bool { return !there(least - 1) })
			for range 20 {
				time.Sleep(100 * time.Millisecond) // the interval of the measurements
				for i := most; i < volumes; i++ {
					if !there(i) {
						t.Fatalf("volume %d of %d went too", i+1, volumes)
					}
				}
			}
		})
	}
}

// asleep calls f while the daemon is stopped: it would make room while f still fills the disk.
func (d *daemon) asleep(f func()) {
	d.t.Helper()
	must(d.t, d.process.Signal(syscall.SIGSTOP))
	f()
	must(d.t, d.process.Signal(syscall.SIGCONT))
}

// retain leaves a number of retained volumes, with a file of the given size in each.
func (d *daemon) retain(volumes, size int) {
	d.t.Helper()
	for i := range volumes {
		d.makePod(podName(i))
		d.publish(podName(i), volumeID(i))
		if err := os.WriteFile(filepath.Join(d.target(podName(i)), "payload"), make([]byte, size), 0o600); err != nil {
			d.t.Fatal(err)
		}
		d.unpublish(podName(i), volumeID(i))
	}
}

func podName(i int) string { return fmt.Sprintf("pod-%d", i) }

// fill writes a file until the file system is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1 << 20, 4096} {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPressureOnADiskThatTheKubeletShares: a volume that was retained just now goes while
// more is free than the kubelet's line, and stays if the kubelet has another disk.
func TestPressureOnADiskThatTheKubeletShares(t *testing.T) {
	const size, volumes, each = 400, 4, 20 // MiB
	for name, tt := range map[string]struct {
		line string
		kept bool
	}{"auto": {"auto", false}, "none": {"none", true}, "percentage": {"25%", false}, "bytes": {"60Mi", false}} {
		t.Run(name, func(t *testing.T) {
			mnt := roottest.FileSystem(t, "ext4", size)
			d := newDaemon(t, "--afterlifespan", "1h", "--pruneinterval", "100ms", "--headroom", "0.1", "--kubelet-line", tt.line)
			d.dir = mnt // the kubelet's directory too
			roottest.UnmountBelowAtEnd(t, mnt)
			d.start()
			d.retain(volumes, each<<20)
			// Between 10 % and 15 % are free.
			if err := unix.Fallocate(create(t, filepath.Join(mnt, "filler")), 0, 0, free(t, mnt)-(size<<20)/8); err != nil {
				t.Fatal(err)
			}
			there := func(i int) bool { return exists(d.data(podName(i), volumeID(i))) }
			if !tt.kept {
				d.eventually("the oldest one deleted", func() bool { return !there(0) })
				d.eventually("more free than the kubelet wants", func() bool { return free(t, mnt) > (size<<20)*15/100 })
				return
			}
			d.signal(syscall.SIGTERM) // after several measurements, or before: nothing goes at 12 %
			for i := range volumes {
				if !there(i) {
					t.Errorf("volume %d is gone", i)
				}
			}
		})
	}
}

// create creates a file until the end of the test.
func create(t *testing.T, path string) (fd int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return int(f.Fd())
}

// free returns the free bytes of a file system.
func free(t *testing.T, path string) int64 {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		t.Fatal(err)
	}
	return int64(fs.Bavail) * fs.Bsize
}
