package localdisk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// bindForeign mounts a directory that has the name of a volume, below a directory on some file system.
func bindForeign(t *testing.T, below, name string) attach.Mount {
	t.Helper()
	dir := filepath.Join(below, "backup", volumesName, name)
	must(t, os.MkdirAll(dir, 0o700))
	path := t.TempDir()
	roottest.Bind(t, dir, path)
	return mountAt(t, path)
}

// TestDirectoryOfTheSameName is not a volume's, on the pool's disk or on another one.
func TestDirectoryOfTheSameName(t *testing.T) {
	each(t, []kind{quotaOnXFS, quotaOnExt4, onBtrfs, imageOnExt4}, func(t *testing.T, k kind) {
		p := newPool(t, k)
		r := p.make(record("pvc-1", sizeFor(k)))
		path := p.stage(r)
		other := t.TempDir()
		roottest.Tmpfs(t, other, 0)
		for where, below := range map[string]string{"the pool's disk": filepath.Dir(p.path), "another disk": other} {
			m := bindForeign(t, below, "pvc-1")
			if name, ok := p.Locations.NameOf(m); ok {
				t.Errorf("%s in %s is taken for %s", m.Root, where, name)
			}
			// Before the pool was seen there is no telling.
			if name, ok := NewLocations(p.path).NameOf(m); !ok || name != "pvc-1" {
				t.Errorf("%s in %s is taken for %q without a look at the pool", m.Root, where, name)
			}
		}
		if name, ok := p.Locations.NameOf(mountAt(t, path)); !ok || name != "pvc-1" {
			t.Errorf("what is staged is of %q", name)
		}
	})
}

// TestDeviceOfTheSameName has another file than a volume's image, which has its name: a backup of the pool. It keeps no
// volume from being unstaged, and is not taken away.
func TestDeviceOfTheSameName(t *testing.T) {
	p := newPool(t, imageOnExt4)
	r := p.make(record("pvc-1", 16*mib))
	other := t.TempDir()
	roottest.Tmpfs(t, other, 0)
	for where, below := range map[string]string{"the pool's disk": filepath.Dir(p.path), "another disk": other} {
		path := p.stage(r)
		dir := filepath.Join(below, "backup", volumesName, "pvc-1")
		must(t, os.MkdirAll(dir, 0o700))
		content, err := os.ReadFile(filepath.Join(p.path, volumesName, "pvc-1", imageName))
		must(t, errors.Join(err, os.WriteFile(filepath.Join(dir, imageName), content, 0o600)))
		device, err := roottest.Run("losetup", "--find", "--show", filepath.Join(dir, imageName))
		if err != nil {
			t.Fatal(device, err)
		}
		node := filepath.Join(t.TempDir(), "node")
		must(t, os.WriteFile(node, nil, 0o600))
		must(t, unix.Mount(device, node, "", unix.MS_BIND, ""))
		if name, ok := p.Locations.NameOf(mountAt(t, node)); ok {
			t.Errorf("the node of the backup's device on %s is taken for %s", where, name)
		}
		must(t, unix.Unmount(node, 0))
		must(t, p.Locations.Unstage(t.Context(), "pvc-1", path))
		if _, err := readBacking(filepath.Base(device)); err != nil {
			t.Errorf("the device of the backup on %s was taken away: %v", where, err)
		}
		if out, err := roottest.Run("losetup", "--detach", device); err != nil {
			t.Errorf("the device of the backup on %s: %s, %v", where, out, err)
		}
	}
}

// TestLocationsOfADiskThatComesBack with another number: the former one counts while something is mounted from it.
func TestLocationsOfADiskThatComesBack(t *testing.T) {
	roottest.Need(t)
	l := NewLocations("/pool")
	var disks []string
	for range 2 {
		disk := t.TempDir()
		must(t, unix.Mount("katbox-test", disk, "tmpfs", 0, ""))
		roottest.UnmountAtEnd(t, disk)
		must(t, os.MkdirAll(filepath.Join(disk, "pool", volumesName), 0o700))
		disks = append(disks, disk)
	}
	learn := func(disk string) (m attach.Mount) {
		dir, err := os.Open(filepath.Join(disk, "pool"))
		must(t, err)
		defer dir.Close()
		at, err := mount.Locate(dir)
		must(t, errors.Join(err, l.learn("/pool", location{Location: at})))
		return attach.Mount{Root: "/pool/" + volumesName + "/pvc-1", Device: at.Device, FSType: "xfs"}
	}
	is := func(m attach.Mount, want bool, when string) {
		if name, ok := l.NameOf(m); ok != want || ok && name != "pvc-1" {
			t.Errorf("%s: %q, %t", when, name, ok)
		}
	}
	former := learn(disks[0])
	now := learn(disks[1])
	is(former, true, "the former disk is still mounted")
	is(now, true, "the disk is back")
	must(t, unix.Unmount(disks[0], 0))
	is(learn(disks[1]), true, "the disk is opened again")
	is(former, false, "the number is free, or another disk's")
}
