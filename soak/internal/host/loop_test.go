package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/soak/internal/launch"
)

// The tests on loop devices skip where there are none, as in a user namespace,
// or where the tools of a file system are missing.

func loopDisk(t *testing.T, kind DiskKind, size, inodes int64) (place, *Disk) {
	t.Helper()
	needMounts(t)
	l := newPlace(t)
	d, err := MakeDisk(l.Work, l.Image, kind, size, inodes)
	if errors.Is(err, ErrUnavailable) {
		t.Skip("this machine lacks loop devices: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, d
}

// devicesOf counts the loop devices that are on the image.
func devicesOf(t *testing.T, image string) int {
	t.Helper()
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		// It may go away at any time.
		text, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(text), image) {
			found++
		}
	}
	return found
}

func checkLoop(t *testing.T, kind DiskKind, size, inodes int64) {
	l, d := loopDisk(t, kind, size, inodes)
	if d.Kind() != kind || !d.Own() || !d.CanStall() || d.Frozen() || d.Fallback() != nil {
		t.Errorf("%s is %+v", kind, d)
	}
	if n := devicesOf(t, l.Image); n != 1 {
		t.Errorf("%d loop devices, want 1", n)
	}
	s, err := d.Free()
	if err != nil || s.TotalBytes > size || s.TotalBytes < size/2 || s.FreeBytes > s.TotalBytes || s.FreeBytes < size/2 {
		t.Errorf("room: %+v, %v", s, err)
	}
	if inodes > 0 && (s.TotalInodes < inodes*9/10 || s.TotalInodes > inodes*11/10) {
		t.Errorf("%d inodes, want %d", s.TotalInodes, inodes)
	}
	if kind == Ext4 {
		fill(t, filepath.Join(l.Work, "file"))
		if s, err := d.Free(); err != nil || s.FreeBytes != 0 {
			t.Errorf("room on the full disk: %+v, %v; want none", s, err)
		}
	}
	checkClose(t, l, d)
	await(t, "the loop device is free", func() bool { return devicesOf(t, l.Image) == 0 })
}

func TestLoopExt4(t *testing.T)  { checkLoop(t, Ext4, 32<<20, 1000) }
func TestLoopXFS(t *testing.T)   { checkLoop(t, XFS, 512<<20, 0) }
func TestLoopBtrfs(t *testing.T) { checkLoop(t, Btrfs, 512<<20, 0) }

// TestLoopTooSmall has an image that nothing can be made of.
func TestLoopTooSmall(t *testing.T) {
	needMounts(t)
	l := newPlace(t)
	_, err := MakeDisk(l.Work, l.Image, Ext4, 1000, 0)
	if errors.Is(err, ErrUnavailable) {
		t.Skip("this machine lacks loop devices: ", err)
	}
	if !errors.Is(err, launch.ErrUsage) {
		t.Errorf("%v, want wrong usage", err)
	}
	if _, err := os.Stat(l.Image); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an image is left over: %v", err)
	}
}

// TestLoopMountRefused has a working directory that nothing can be mounted on;
// the loop device was taken by then.
func TestLoopMountRefused(t *testing.T) {
	l, d := loopDisk(t, Ext4, 16<<20, 0)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	l.Work = filepath.Join(l.Work, "missing")
	if d, err := MakeDisk(l.Work, l.Image, Ext4, 16<<20, 0); !errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrUnavailable) {
		t.Errorf("%+v, %v; want that it is missing", d, err)
	}
	await(t, "the loop device is free", func() bool { return devicesOf(t, l.Image) == 0 })
	if _, err := os.Stat(l.Image); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an image is left over: %v", err)
	}
}
