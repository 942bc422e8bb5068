package disk

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/testing/roottest"
)

func mountedAt(t *testing.T, path string) (attach.Mount, bool) {
	t.Helper()
	table, err := attach.Table()
	if err != nil {
		t.Fatal(err)
	}
	return attach.At(table, path)
}

func TestMountOfADisk(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, fsType string) {
		d, dir := formatted(t, fsType, small), target(t)
		for range 2 {
			mustMount(t, d.path, dir, fsType, false, "noatime", "nosuid", "discard", "_netdev")
		}
		there, ok := mountedAt(t, dir)
		number, err := blockDevice(d.path)
		if err != nil || !ok || there.Device != number || there.FSType != fsType || there.Root != "/" || there.ReadOnly {
			t.Errorf("%+v, %v", there, err)
		}
		if !slices.Contains(there.Flags, "noatime") || !slices.Contains(there.Flags, "nosuid") || !slices.Contains(there.Options, "discard") {
			t.Errorf("flags %q, options %q", there.Flags, there.Options)
		}
		if err := quiet.Mount(d.path, dir, fsType, nil, true); !errors.Is(err, volume.ErrConflict) {
			t.Errorf("read-only as well: %v", err)
		}
		if err := quiet.Remove(dir); !errors.Is(err, volume.ErrBusy) {
			t.Errorf("remove while it is mounted: %v", err)
		}
		file, err := os.Create(filepath.Join(dir, "file"))
		if err != nil {
			t.Fatal(err)
		}
		if err := quiet.Unmount(dir); !errors.Is(err, volume.ErrBusy) {
			t.Errorf("unmount while a file is open: %v", err)
		}
		file.Close()
		for range 2 {
			mustUnmount(t, dir)
		}
		if _, ok := mountedAt(t, dir); ok {
			t.Error("still mounted")
		}
		for range 2 {
			if err := quiet.Remove(dir); err != nil {
				t.Error(err)
			}
		}
		if err := quiet.Mount(d.path, dir, fsType, nil, false); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("where no directory is: %v", err)
		}
	})
}

func TestMountWhereSomethingElseIs(t *testing.T) {
	d, other, dir := formatted(t, ext4, small), formatted(t, ext4, small), target(t)
	mustMount(t, other.path, dir, ext4, false)
	err := quiet.Mount(d.path, dir, ext4, nil, false)
	if !errors.Is(err, attach.ErrNotOurs) || !errors.Is(err, volume.ErrForeignMount) {
		t.Errorf("over another disk: %v", err)
	}
	mustUnmount(t, dir)
	roottest.Tmpfs(t, dir, 0)
	if err := quiet.Mount(d.path, dir, ext4, nil, false); !errors.Is(err, attach.ErrNotOurs) {
		t.Errorf("over a tmpfs: %v", err)
	}
}

func TestMountFollowsNoLink(t *testing.T) {
	d, dir := formatted(t, ext4, small), target(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := quiet.Mount(d.path, link, ext4, nil, false); !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
		t.Errorf("%v", err)
	}
	if _, ok := mountedAt(t, dir); ok {
		t.Error("it is mounted where the link leads")
	}
}

func TestMountOptions(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, fsType string) {
		d, dir := formatted(t, fsType, small), target(t)
		for _, option := range []string{"journal_path=/dev/sda", "journal_dev=5", "logdev=/dev/sda", "rtdev=/dev/sda", "loop", "offset=4096"} {
			err := quiet.Mount(d.path, dir, fsType, []string{option}, false)
			if !errors.Is(err, volume.ErrInvalid) || !strings.Contains(err.Error(), option) {
				t.Errorf("%s: %v", option, err)
			}
		}
		err := quiet.Mount(d.path, dir, fsType, []string{"no-such-option"}, false)
		if !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), "no-such-option") {
			t.Errorf("an option that the kernel does not know: %v", err)
		}
		if err := quiet.Mount(d.path, dir, map[string]string{ext4: xfs, xfs: ext4}[fsType], nil, false); err == nil {
			t.Error("the other file system")
		}
	})
}

// TestClonesOnOneNode: a clone of an XFS has the UUID of its origin.
func TestClonesOnOneNode(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, fsType string) {
		origin := formatted(t, fsType, small)
		clone := newDevice(t, small)
		if _, err := roottest.Run("cp", "--sparse=always", origin.image, clone.image); err != nil {
			t.Fatal(err)
		}
		mustMount(t, origin.path, target(t), fsType, false)
		mustMount(t, clone.path, target(t), fsType, false)
	})
}

// dirty makes a file system with a file that only its journal has, on a device that refuses writes.
func dirty(t *testing.T, fsType string) device {
	t.Helper()
	origin, dir := formatted(t, fsType, small), target(t)
	mustMount(t, origin.path, dir, fsType, false)
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := roottest.Run("sync", "-f", dir); err != nil {
		t.Fatal(err)
	}
	// As an array makes a snapshot of a volume that is in use.
	d := device{image: origin.image + ".snapshot"}
	if _, err := roottest.Run("cp", "--sparse=always", origin.image, d.image); err != nil {
		t.Fatal(err)
	}
	mustUnmount(t, dir)
	d.attach(t, "--read-only")
	return d
}

func TestReadOnlyDiskWithADirtyJournal(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, fsType string) {
		d, dir := dirty(t, fsType), target(t)
		var lines []string
		if err := logging(&lines).Mount(d.path, dir, fsType, nil, true); err != nil {
			t.Fatal(err)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], d.path) {
			t.Errorf("log %q", lines)
		}
		there, _ := mountedAt(t, dir)
		if !there.ReadOnly || !slices.Contains(there.Options, map[string]string{ext4: "norecovery", xfs: "norecovery"}[fsType]) {
			t.Errorf("%+v", there)
		}
		mustUnmount(t, dir)
		if err := quiet.Mount(d.path, dir, fsType, nil, false); !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.EACCES) {
			t.Errorf("to write: %v", err)
		}
	})
}

func TestReadOnlyDisk(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, fsType string) {
		origin := formatted(t, fsType, small)
		d, dir := device{image: origin.image}, target(t)
		d.attach(t, "--read-only")
		var lines []string
		if err := logging(&lines).Mount(d.path, dir, fsType, nil, true); err != nil || len(lines) != 0 {
			t.Errorf("%v, log %q", err, lines)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("write: %v", err)
		}
		if stats, err := quiet.Stats(dir); err != nil || stats.Abnormal {
			t.Errorf("%+v, %v", stats, err)
		}
	})
}
