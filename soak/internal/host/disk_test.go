package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/launch"
)

func TestCheckDisk(t *testing.T) {
	for _, test := range []struct {
		kind         DiskKind
		size, inodes int64
		good         bool
	}{
		{Directory, 0, 0, true}, {Directory, -1, -1, true},
		{Ext4, 1 << 20, 0, true}, {Ext4, 1 << 20, 100, true}, {Auto, 1, 100, true}, {Tmpfs, 1, 1, true},
		{XFS, 1, 0, true}, {Btrfs, 1, 0, true},
		{"", 1, 0, false}, {"ext3", 1, 0, false},
		{Ext4, 0, 0, false}, {Tmpfs, -1, 0, false}, {Tmpfs, 1, -1, false}, {XFS, 1, 1, false}, {Btrfs, 1, 1, false},
	} {
		if err := checkDisk(test.kind, test.size, test.inodes); errors.Is(err, launch.ErrUsage) == test.good || (err == nil) != test.good {
			t.Errorf("%s with %d bytes and %d inodes: %v; want it good: %t", test.kind, test.size, test.inodes, err, test.good)
		}
	}
	if d, err := MakeDisk("/no/work", "/no/image", "ext3", 1<<20, 0); !errors.Is(err, launch.ErrUsage) {
		t.Errorf("%+v, %v; want wrong usage", d, err)
	}
	for _, kind := range []DiskKind{Directory, Tmpfs, Btrfs, Auto} {
		if d, err := MakeQuotaDisk("/no/work", "/no/image", kind, 1<<30, 0); !errors.Is(err, launch.ErrUsage) {
			t.Errorf("quotas on %s: %+v, %v; want wrong usage", kind, d, err)
		}
	}
}

func TestDirectory(t *testing.T) {
	l := newPlace(t)
	d, err := MakeDisk(l.Work, l.Image, Directory, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if d.Kind() != Directory || d.Own() || d.CanStall() || d.Frozen() || d.Fallback() != nil {
		t.Errorf("a directory is %+v", d)
	}
	if s, err := d.Free(); err != nil || s.TotalBytes <= 0 || s.FreeBytes > s.TotalBytes {
		t.Errorf("room: %+v, %v", s, err)
	}
	if err := d.Stall(context.Background(), time.Second, time.Second, time.Second); !errors.Is(err, launch.ErrUsage) {
		t.Errorf("stall: %v, want wrong usage", err)
	}
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := os.Stat(l.Work); err != nil {
		t.Errorf("after that: %v", err)
	}
}

func TestSpaceOf(t *testing.T) {
	st := unix.Statfs_t{Bsize: 4096, Frsize: 1024, Blocks: 1000, Bfree: 500, Bavail: 400, Files: 30, Ffree: 20}
	want := Space{TotalBytes: 1000 << 10, FreeBytes: 400 << 10, TotalInodes: 30, FreeInodes: 20}
	if got := spaceOf(st); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	st.Frsize = 0
	if got := spaceOf(st); got.TotalBytes != 4096*1000 {
		t.Errorf("without the size of a fragment: %+v", got)
	}
}

// fill writes until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	block := make([]byte, 4096)
	for {
		if _, err := file.Write(block); errors.Is(err, unix.ENOSPC) {
			return
		} else if err != nil {
			t.Fatalf("fill the disk: %v", err)
		}
	}
}

func TestTmpfs(t *testing.T) {
	needMounts(t)
	l := newPlace(t)
	unmountAtEnd(t, l.Work)
	d, err := MakeDisk(l.Work, l.Image, Tmpfs, 4<<20, 50)
	if err != nil {
		t.Fatal(err)
	}
	if d.Kind() != Tmpfs || !d.Own() || d.CanStall() || d.Fallback() != nil {
		t.Errorf("a tmpfs is %+v", d)
	}
	if s, err := d.Free(); err != nil || s.TotalBytes != 4<<20 || s.FreeBytes != 4<<20 || s.TotalInodes != 50 || s.FreeInodes >= 50 {
		t.Errorf("room: %+v, %v", s, err)
	}
	fill(t, filepath.Join(l.Work, "file"))
	if s, err := d.Free(); err != nil || s.FreeBytes != 0 {
		t.Errorf("room on the full disk: %+v, %v", s, err)
	}
	checkClose(t, l, d)
}

// checkClose closes a disk, the first time while it is in use.
func checkClose(t *testing.T, l place, d *Disk) {
	t.Helper()
	open, err := os.Open(l.Work)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("close while in use: %v, want EBUSY", err)
	}
	open.Close()
	if mounted, err := MountedAt(l.Work); err != nil || !mounted {
		t.Errorf("after the refusal: mounted %t, %v", mounted, err)
	}
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Fatalf("close: %v", err)
	}
	if mounted, err := MountedAt(l.Work); err != nil || mounted {
		t.Errorf("after closing: mounted %t, %v", mounted, err)
	}
	if _, err := os.Stat(l.Image); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the image after closing: %v", err)
	}
	if err := os.Remove(l.Work); err != nil {
		t.Error(err)
	}
}

func TestAuto(t *testing.T) {
	needMounts(t)
	l := newPlace(t)
	unmountAtEnd(t, l.Work)
	d, err := MakeDisk(l.Work, l.Image, Auto, 16<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case d.Kind() == Ext4 && d.Fallback() == nil && d.Own():
	case d.Kind() == Tmpfs && errors.Is(d.Fallback(), ErrUnavailable) && d.Own():
	default:
		t.Errorf("auto is %+v", d)
	}
	checkClose(t, l, d)
}

// TestAutoFallsBack takes the loop devices away.
func TestAutoFallsBack(t *testing.T) {
	needMounts(t)
	l := newPlace(t)
	unmountAtEnd(t, l.Work)
	unmountAtEnd(t, "/dev/loop-control")
	if err := Bind("/dev/null", "/dev/loop-control"); err != nil && !errors.Is(err, unix.ENOENT) {
		t.Fatal(err)
	}
	if d, err := MakeDisk(l.Work, l.Image, Ext4, 16<<20, 0); !errors.Is(err, ErrUnavailable) {
		t.Errorf("ext4: %+v, %v; want it unavailable", d, err)
	}
	if _, err := os.Stat(l.Image); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an image is left over: %v", err)
	}
	d, err := MakeDisk(l.Work, l.Image, Auto, 16<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	if d.Kind() != Tmpfs || !errors.Is(d.Fallback(), ErrUnavailable) {
		t.Errorf("auto is %+v", d)
	}
	checkClose(t, l, d)
}
