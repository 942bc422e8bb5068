package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// fullDisk is a kind of file system and the resource that it runs out of.
type fullDisk struct {
	fstype string
	size   int // MiB
	mkfs   []string
	fill   func(t *testing.T, dir string)
	// names: there is room for names and empty directories even if no byte is free.
	names bool
	// most is how many volumes may go before there is room for one.
	most int
	// short: -short does not leave it out.
	short bool
}

// fullDisks are little larger than their mkfs or the records' reserve demands; on a smaller one btrfs may
// refuse a write although it has room, while many write at the same time. The space of a few
// volumes is the headroom, with two exceptions. XFS lets the inodes exceed their limit a little,
// and as many must go before one counts as free. btrfs can use the space in its trees only
// after the deletion was written, and a refused call does not wait for that.
var fullDisks = map[string]fullDisk{
	"ext4 bytes":  {fstype: "ext4", size: 128, fill: fillBytes, most: 5, short: true},
	"ext4 inodes": {fstype: "ext4", size: 128, mkfs: []string{"-N", "4096"}, fill: fillInodes, most: 7},
	"xfs bytes":   {fstype: "xfs", size: 300, fill: fillBytes, most: 8},
	"xfs inodes":  {fstype: "xfs", size: 300, mkfs: []string{"-i", "maxpct=1"}, fill: fillInodes, most: 20, short: true},
	"btrfs bytes": {fstype: "btrfs", size: 384, fill: fillBytes, names: true, most: 12},
	"btrfs trees": {fstype: "btrfs", size: 384, fill: fillTrees, most: 20},
}

// workingDisk is a file system with a working directory.
type workingDisk struct {
	fullDisk
	test *testing.T
	mnt  string
	work string
}

// onFullDisks runs a test on each of the file systems at the same time, since mostly they wait. With -short it takes
// one without bytes and one without inodes.
func onFullDisks(t *testing.T, test func(t *testing.T, w workingDisk)) {
	var running sync.WaitGroup
	for name, disk := range fullDisks {
		if testing.Short() && !disk.short {
			continue
		}
		running.Go(func() {
			t.Run(name, func(t *testing.T) { test(t, newWorkingDisk(t, disk)) })
		})
	}
	running.Wait()
}

func newWorkingDisk(t *testing.T, disk fullDisk) workingDisk {
	t.Helper()
	mnt := roottest.FileSystem(t, disk.fstype, disk.size, disk.mkfs...)
	roottest.UnmountBelowAtEnd(t, mnt)
	w := workingDisk{fullDisk: disk, test: t, mnt: mnt, work: filepath.Join(mnt, "work")}
	must(t, os.Mkdir(w.filler(), 0o700))
	return w
}

func (w workingDisk) filler() string { return filepath.Join(w.mnt, "filler") }

// fillUp uses up all free space.
func (w workingDisk) fillUp() {
	w.test.Helper()
	w.fill(w.test, w.filler())
}

// empty gives back the space that fillUp took.
func (w workingDisk) empty() {
	w.test.Helper()
	must(w.test, os.RemoveAll(w.filler()), os.Mkdir(w.filler(), 0o700))
	syncFS(w.test, w.mnt)
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// syncFS makes freed space visible.
func syncFS(t testing.TB, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	must(t, err)
	must(t, unix.Syncfs(int(f.Fd())), f.Close())
}

// fillBytes writes until not even one byte fits, and makes files until no name does. The
// writes of the first pass may free a little.
func fillBytes(t *testing.T, dir string) {
	t.Helper()
	for wrote := true; wrote; {
		wrote = fillFile(t, filepath.Join(dir, "bytes"), 1<<20, 4096, 1)
		syncFS(t, dir)
	}
	for fillNames(t, dir, 0, 300) {
		syncFS(t, dir)
	}
}

// fillFile makes a file longer, and reports whether it could.
func fillFile(t *testing.T, path string, sizes ...int) bool {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if errors.Is(err, unix.ENOSPC) {
		return false
	}
	must(t, err)
	wrote := 0
	for _, size := range sizes {
		for err == nil {
			var n int
			n, err = f.Write(make([]byte, size))
			wrote += n
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
	must(t, f.Close())
	return wrote > 0
}

// fillInodes makes empty files until none can be made.
func fillInodes(t *testing.T, dir string) {
	t.Helper()
	for fillNames(t, dir, 0, 1_000_000) {
		syncFS(t, dir)
	}
}

// fillTrees leaves no room either in the trees of btrfs, for names and small files.
func fillTrees(t *testing.T, dir string) {
	t.Helper()
	fillBytes(t, dir)
	for fillNames(t, dir, 2000, 1_000_000) || fillNames(t, dir, 0, 1_000_000) {
		syncFS(t, dir)
	}
}

// fillNames makes files of a size, up to a number, and reports whether it could.
func fillNames(t *testing.T, dir string, size, most int) bool {
	t.Helper()
	for i := range most {
		f, err := os.CreateTemp(dir, "name")
		if err == nil {
			_, err = f.Write(make([]byte, size))
			err = errors.Join(err, f.Close())
		}
		if errors.Is(err, unix.ENOSPC) {
			return i > 0
		}
		must(t, err)
	}
	return false
}

func trashOf(t testing.TB, work string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(work, ".trash"))
	must(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func podsOf(t testing.TB, work string) []string {
	t.Helper()
	entries, err := os.ReadDir(work)
	must(t, err)
	var names []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	return names
}
