package dataplane_test

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/attachtest"
)

// TestArrayISCSI: a node sees the LUNs that are attached to it, by the serial number of the volume; they grow;
// snapshots and clones have what the volume had.
func TestArrayISCSI(t *testing.T) {
	a := attachtest.NewArray(t)
	node := attachtest.ThisNode(t)
	v := a.Create(t, "disk", 1, true)
	at := a.Attach(t, v, node, false)
	s := login(t, a, node, at)
	device := s.scan(t, at.LUN)
	if got := serial(t, device); got != at.Serial {
		t.Errorf("the disk's serial number is %q instead of %q", got, at.Serial)
	}
	if other := s.scan(t, at.LUN+1); other != "" {
		t.Errorf("there is another disk, %s", other)
	}
	attachtest.Run(t, "mke2fs", "-q", "-F", "-t", "ext4", device)
	dir := mountDisk(t, device)
	old := fill(t, filepath.Join(dir, "file"), 300)
	// As the kernel writes it, a file system on a device is consistent only where it is frozen.
	attachtest.Run(t, "fsfreeze", "--freeze", dir)
	snapshot := a.Snapshot(t, "noon", v)
	attachtest.Run(t, "fsfreeze", "--unfreeze", dir)
	fill(t, filepath.Join(dir, "file"), 100)

	a.Grow(t, v, 2)
	if err := rescan(device); err != nil {
		t.Fatal(err)
	}
	if got := bytesOf(t, device); got != 2<<30 {
		t.Errorf("after the expansion to 2 GiB the disk has %d bytes", got)
	}

	clone := a.Attach(t, a.Clone(t, "restored", v, snapshot), node, false)
	if clone.LUN == at.LUN {
		t.Fatalf("two volumes have the LUN %d", at.LUN)
	}
	second := s.scan(t, clone.LUN)
	restored := mountDisk(t, second)
	same(t, filepath.Join(restored, "file"), old)
	for _, at := range []string{restored, dir} {
		if err := unix.Unmount(at, 0); err != nil {
			t.Fatal(err)
		}
	}
	remove(t, device)
	remove(t, second)
	a.Detach(t, v, node)
	if again := s.scan(t, at.LUN); again != "" {
		t.Errorf("a detached volume is there again, as %s", again)
	}
	s.logout(t)
}

// TestArraySnapshotIsDeleted: volumes are as they were. The snapshot has the same number as the volume.
func TestArraySnapshotIsDeleted(t *testing.T) {
	a := attachtest.NewArray(t)
	node := attachtest.ThisNode(t)
	v := a.Create(t, "disk", 1, true)
	at := a.Attach(t, v, node, false)
	s := login(t, a, node, at)
	device := s.scan(t, at.LUN)
	attachtest.Run(t, "mke2fs", "-q", "-F", "-t", "ext4", device)
	dir := mountDisk(t, device)
	w := attachtest.StartWriter(t, filepath.Join(dir, "file"))
	w.More(t)
	snapshot := a.Snapshot(t, "noon", v)
	if strings.TrimPrefix(snapshot, "snap-") != strings.TrimPrefix(v.ID, "volume-") {
		t.Fatalf("%s is a snapshot of %s", snapshot, v.ID)
	}
	if err := a.Client.DeleteSnapshot(t.Context(), snapshot); err != nil {
		t.Error(err)
	}
	w.More(t)
	w.End(t)
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
	remove(t, device)
	s.logout(t)
}

// TestArrayISCSIReadOnly: a volume that is attached read-only takes no data.
func TestArrayISCSIReadOnly(t *testing.T) {
	a := attachtest.NewArray(t)
	node := attachtest.ThisNode(t)
	at := a.Attach(t, a.Create(t, "archive", 1, true), node, true)
	s := login(t, a, node, at)
	device := s.scan(t, at.LUN)
	if got := read(t, "/sys/block/"+filepath.Base(device)+"/ro"); got != "1" {
		t.Errorf("%s says ro %s", device, got)
	}
	if out, err := attachtest.Try("mke2fs", "-q", "-F", "-t", "ext4", device); err == nil {
		t.Errorf("mke2fs went through: %s", out)
	}
	remove(t, device)
	s.logout(t)
}

// TestArrayISCSIAccess: neither a node without a server record logs in, nor one with another secret.
func TestArrayISCSIAccess(t *testing.T) {
	a := attachtest.NewArray(t)
	node := attachtest.ThisNode(t)
	v := a.Create(t, "disk", 1, true)
	at := a.Attach(t, v, node, false)
	stranger := node
	stranger.Name, stranger.IQN = "stranger", node.IQN+"0"
	if out, err := attachtest.Try("iscsiadm", define(t, a, stranger, at).args("--login")...); err == nil {
		t.Errorf("a node without a server record: %s", out)
	}
	wrong := *a
	wrong.Secret = "wrong-secret-1"
	if out, err := attachtest.Try("iscsiadm", define(t, &wrong, node, at).args("--login")...); err == nil {
		t.Errorf("with another secret: %s", out)
	}
}

// TestArrayISCSITwoNodes: each sees what is attached to it. A volume of both has one serial number.
func TestArrayISCSITwoNodes(t *testing.T) {
	a := attachtest.NewArray(t)
	one := attachtest.ThisNode(t)
	two := one
	two.Name, two.IQN = "node-2", one.IQN+"2"
	own, both := a.Create(t, "own", 1, true), a.Create(t, "both", 1, true)
	ownAt := a.Attach(t, own, one, false)
	bothAtOne, bothAtTwo := a.Attach(t, both, one, false), a.Attach(t, both, two, false)
	if bothAtOne.LUN == ownAt.LUN || bothAtTwo.LUN != 0 {
		t.Errorf("LUNs %d and %d on one node, %d on the other", ownAt.LUN, bothAtOne.LUN, bothAtTwo.LUN)
	}
	first, second := login(t, a, one, ownAt), login(t, a, two, bothAtTwo)
	for _, c := range []struct {
		s      session
		lun    int
		serial string
	}{{first, ownAt.LUN, own.ID}, {first, bothAtOne.LUN, both.ID}, {second, bothAtTwo.LUN, both.ID}} {
		device := c.s.scan(t, c.lun)
		if device == "" || serial(t, device) != c.serial {
			t.Fatalf("LUN %d of %s is %q", c.lun, c.s.iface, device)
		}
	}
	if device := second.scan(t, bothAtOne.LUN); device != "" {
		t.Errorf("node 2 has the LUN of node 1, as %s", device)
	}
	first.logout(t)
	second.logout(t)
}

// TestArrayISCSICutOff: a volume that the array unmaps while it is mounted fails at once; then the node can
// unmount it and go on with others.
func TestArrayISCSICutOff(t *testing.T) {
	a := attachtest.NewArray(t)
	node := attachtest.ThisNode(t)
	v := a.Create(t, "lost", 1, true)
	at := a.Attach(t, v, node, false)
	s := login(t, a, node, at)
	device := s.scan(t, at.LUN)
	attachtest.Run(t, "mke2fs", "-q", "-F", "-t", "ext4", device)
	dir := mountDisk(t, device)
	kept := fill(t, filepath.Join(dir, "kept"), 100)
	a.Detach(t, v, node)
	if err := put(filepath.Join(dir, "late"), []byte("late")); err == nil {
		t.Error("a file was written after the volume was detached")
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatalf("unmount: %v", err)
	}
	remove(t, device)
	// Attached again, what was durable is there.
	at = a.Attach(t, v, node, false)
	dir = mountDisk(t, s.scan(t, at.LUN))
	same(t, filepath.Join(dir, "kept"), kept)
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
	s.logout(t)
}
