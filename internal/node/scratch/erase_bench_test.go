package scratch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// BenchmarkErase erases a tree and has rm -rf delete one like it, in turns, on an ext4 with a
// journal. "x-rm" is how many times the files per second of rm -rf Erase does: above 1, Erase is
// faster. KATBOX_BENCH_FILES sets the size of the tree; with it at 1000000, mind -benchtime=3x.
func BenchmarkErase(b *testing.B) {
	files := 20_000
	if text := os.Getenv("KATBOX_BENCH_FILES"); text != "" {
		var err error
		if files, err = strconv.Atoi(text); err != nil {
			b.Fatalf("KATBOX_BENCH_FILES: %v", err)
		}
	}
	for _, shape := range []struct {
		name        string
		directories int
	}{{"one directory", 1}, {"1000 directories", 1000}} {
		for _, cold := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/cold=%v", shape.name, cold), func(b *testing.B) {
				benchmarkErase(b, files, shape.directories, cold)
			})
		}
	}
}

func benchmarkErase(b *testing.B, files, directories int, cold bool) {
	// mkfs makes an inode for 16 KiB.
	root := roottest.FileSystem(b, "ext4", 256+files/50)
	var ours, theirs time.Duration
	for turn := range 2 * b.N {
		b.StopTimer()
		// Who begins changes, for what one leaves is what the other finds.
		rm := (turn+turn/2)%2 == 1
		d := benchTree(b, root, files, directories, cold)
		path := filepath.Join(root, trashName, "tree")
		start := time.Now()
		if rm {
			if out, err := exec.Command("rm", "-rf", path).CombinedOutput(); err != nil {
				b.Fatalf("rm: %v: %s", err, out)
			}
			theirs += time.Since(start)
		} else {
			b.StartTimer()
			if err := d.Erase(context.Background(), "tree", nil); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			ours += time.Since(start)
		}
		if err := kernel.Syncfs(d.fd()); err != nil {
			b.Fatal(err)
		}
		if os.Getenv("KATBOX_BENCH_SHOW") != "" {
			b.Logf("rm=%v %v", rm, time.Since(start))
		}
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(files*b.N)/ours.Seconds(), "files/s")
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "x-rm")
}

// benchTree makes a tree in the trash, and if it is to be cold, has the kernel forget it.
func benchTree(b *testing.B, root string, files, directories int, cold bool) *Dir {
	b.Helper()
	d, err := Open(root)
	if err != nil {
		b.Fatal(err)
	}
	tree := filepath.Join(root, trashName, "tree")
	for i := range files {
		dir := filepath.Join(tree, strconv.Itoa(i%directories))
		if i < directories {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				b.Fatal(err)
			}
		}
		fd, err := unix.Open(filepath.Join(dir, fmt.Sprintf("file-%d", i)), unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		unix.Close(fd)
	}
	if err := kernel.Syncfs(d.fd()); err != nil {
		b.Fatal(err)
	}
	if !cold {
		return d
	}
	if err := d.Close(); err != nil {
		b.Fatal(err)
	}
	remount(b, root)
	if d, err = Open(root); err != nil {
		b.Fatal(err)
	}
	return d
}

// remount takes what roottest.FileSystem mounted away and mounts it again.
func remount(b *testing.B, root string) {
	b.Helper()
	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(root))
	if err != nil || len(mounts) != 1 {
		b.Fatalf("find what is mounted on %s: %v, %v", root, mounts, err)
	}
	if err := unix.Unmount(root, 0); err != nil {
		b.Fatal(err)
	}
	// What the loop device reads is to come from the disk, too.
	if image, err := os.Open(filepath.Join(root, "..", "image")); err == nil {
		_ = image.Sync()
		_ = unix.Fadvise(int(image.Fd()), 0, 0, unix.FADV_DONTNEED)
		image.Close()
	}
	if err := unix.Mount(mounts[0].Source, root, mounts[0].FSType, 0, ""); err != nil {
		b.Fatal(err)
	}
}
