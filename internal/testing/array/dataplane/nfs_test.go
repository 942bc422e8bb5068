package dataplane_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/testing/attachtest"
)

// TestArrayNFS: a file system is there for the node to which it is attached, and for no other; it grows; its
// snapshots and clones have what it had.
func TestArrayNFS(t *testing.T) {
	a := attachtest.NewArray(t)
	node := attachtest.ThisNode(t)
	v := a.Create(t, "shared", 1, false)
	stranger := attachtest.Node{Name: "other", Address: "10.255.0.99"}
	if mounted, err := tryNFS(t, a.Attach(t, v, stranger, false)); err == nil {
		t.Fatalf("it was mounted on %s without being attached here", mounted)
	}
	at := a.Attach(t, v, node, false)
	dir := mountNFS(t, at)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("a new volume has %v, %v", entries, err)
	}
	before := size(t, dir)
	old := fill(t, filepath.Join(dir, "file"), 100)
	snapshot := a.Snapshot(t, "noon", v)
	fill(t, filepath.Join(dir, "file"), 200)
	a.Grow(t, v, 2)
	if after := size(t, dir); after < before*19/10 {
		t.Errorf("after the expansion from 1 to 2 GiB it has %d MiB instead of %d", after, before)
	}

	clone := a.Clone(t, "restored", v, snapshot)
	restored := mountNFS(t, a.Attach(t, clone, node, false))
	same(t, filepath.Join(restored, "file"), old)
	if clone.Size != array.GiB {
		t.Errorf("the clone of a snapshot of 1 GiB has %s", clone.Size)
	}
	twin := mountNFS(t, a.Attach(t, a.Clone(t, "twin", v, ""), node, false))
	same(t, filepath.Join(twin, "file"), sum(t, filepath.Join(dir, "file")))
	// What is written to one is not in the other.
	fill(t, filepath.Join(twin, "file"), 10)
	same(t, filepath.Join(restored, "file"), old)
}

// TestArrayNFSReadOnly: root on a node cannot write to what is attached read-only.
func TestArrayNFSReadOnly(t *testing.T) {
	a := attachtest.NewArray(t)
	v := a.Create(t, "archive", 1, false)
	dir := mountNFS(t, a.Attach(t, v, attachtest.ThisNode(t), true))
	if err := put(filepath.Join(dir, "file"), []byte("x")); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing: %v", err)
	}
}

// TestArrayNFSCutOff: a volume that is detached while it is mounted is out of reach at once, also for files
// that are open; and the node can unmount it.
func TestArrayNFSCutOff(t *testing.T) {
	a := attachtest.NewArray(t)
	node := attachtest.ThisNode(t)
	v := a.Create(t, "lost", 1, false)
	dir := mountNFS(t, a.Attach(t, v, node, false))
	open, err := os.Create(filepath.Join(dir, "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	a.Detach(t, v, node)
	if _, err := open.WriteString("late"); err == nil {
		err = open.Sync()
		if err == nil {
			t.Error("an open file took data after the volume was detached")
		}
	}
	if _, err := os.ReadDir(dir); !errors.Is(err, unix.ESTALE) {
		t.Errorf("reading the directory: %v", err)
	}
	_ = open.Close()
	if err := unix.Unmount(dir, 0); err != nil {
		t.Errorf("unmount: %v", err)
	}
	// Attached again, it is as it was.
	dir = mountNFS(t, a.Attach(t, v, node, false))
	if _, err := os.Stat(filepath.Join(dir, "open")); err != nil {
		t.Error(err)
	}
}
