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

// published returns a path below which nothing is yet, whose mounts go at the end of the test.
func published(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "published")
	roottest.UnmountAtEnd(t, path)
	return path
}

func TestBindOfADirectory(t *testing.T) {
	d, staging := formatted(t, ext4, small), target(t)
	first, second := published(t), published(t)
	if err := quiet.Bind(staging, first, nil, false); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("before it is staged: %v", err)
	}
	if _, err := os.Lstat(first); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the target was made: %v", err)
	}
	mustMount(t, d.path, staging, ext4, false)
	for range 2 {
		if err := quiet.Bind(staging, first, nil, false); err != nil {
			t.Fatal(err)
		}
		if err := quiet.Bind(staging, second, []string{"noexec"}, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(first, "file"), []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(second, "file")); err != nil || string(data) != "data" {
		t.Errorf("%q, %v", data, err)
	}
	if err := os.WriteFile(filepath.Join(second, "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("write through the one that is read-only: %v", err)
	}
	if there, _ := mountedAt(t, second); !there.ReadOnly || !slices.Contains(there.Flags, "noexec") {
		t.Errorf("%+v", there)
	}
	for what, err := range map[string]error{
		"read-only":         quiet.Bind(staging, first, nil, true),
		"noexec":            quiet.Bind(staging, first, []string{"noexec"}, false),
		"to write":          quiet.Bind(staging, second, []string{"noexec"}, false),
		"exec":              quiet.Bind(staging, second, []string{"exec"}, true),
		"other access time": quiet.Bind(staging, second, []string{"strictatime"}, true),
	} {
		if !errors.Is(err, volume.ErrConflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	otherDisk, other := formatted(t, ext4, small), target(t)
	mustMount(t, otherDisk.path, other, ext4, false)
	if err := quiet.Bind(other, first, nil, false); !errors.Is(err, attach.ErrNotOurs) {
		t.Errorf("another volume: %v", err)
	}
	for _, path := range []string{first, second, staging} {
		mustUnmount(t, path)
		if err := quiet.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

func TestBindDevice(t *testing.T) {
	d, dir := newDevice(t, small), t.TempDir()
	staged := filepath.Join(dir, "device")
	roottest.UnmountAtEnd(t, staged)
	target := published(t)
	number, err := blockDevice(d.path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := quiet.DeviceAt(staged); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	for range 2 {
		if err := quiet.BindDevice(d.path, staged); err != nil {
			t.Fatal(err)
		}
		if err := quiet.Bind(staged, target, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{staged, target} {
		if got, err := quiet.DeviceAt(path); err != nil || got != number {
			t.Errorf("%s: %d, %v; want %d", path, got, err, number)
		}
	}
	// It is the device: what is written through one path is read through the other.
	file, err := os.OpenFile(target, os.O_RDWR|unix.O_SYNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("data"), 4096); err != nil {
		t.Error(err)
	}
	file.Close()
	if found, err := quiet.Content(t.Context(), d.path); !errors.Is(err, attach.ErrNotOurs) {
		t.Errorf("%q, %v", found, err)
	}
	stats, err := quiet.Stats(target)
	if want := (volume.Stats{Space: volume.Space{Total: volume.Size{Bytes: small << 20}}}); err != nil || stats != want {
		t.Errorf("%+v, %v", stats, err)
	}
	other := newDevice(t, small)
	if err := quiet.BindDevice(other.path, staged); !errors.Is(err, attach.ErrNotOurs) {
		t.Errorf("another device: %v", err)
	}
	if err := quiet.Remove(target); !errors.Is(err, volume.ErrBusy) {
		t.Errorf("remove: %v", err)
	}
	for _, path := range []string{target, staged} {
		mustUnmount(t, path)
		for range 2 {
			if err := quiet.Remove(path); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := quiet.Stats(target); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("stats when it is gone: %v", err)
	}
}

func TestDeviceWhereSomethingElseIs(t *testing.T) {
	d, other, dir := newDevice(t, small), formatted(t, ext4, small), target(t)
	mustMount(t, other.path, dir, ext4, false)
	if _, err := quiet.DeviceAt(dir); !errors.Is(err, attach.ErrNotOurs) {
		t.Errorf("device at a file system: %v", err)
	}
	if err := quiet.BindDevice(d.path, dir); !errors.Is(err, attach.ErrNotOurs) {
		t.Errorf("bind on a file system: %v", err)
	}
	if err := quiet.BindDevice(d.image, filepath.Join(t.TempDir(), "x")); err == nil {
		t.Error("a file was bound as a device")
	}
}

// TestDeviceThatIsGone: its number may be another disk's by now.
func TestDeviceThatIsGone(t *testing.T) {
	roottest.Need(t)
	// As devtmpfs does when a disk goes, which no test can make a disk do.
	dev := target(t)
	roottest.Tmpfs(t, dev, 0)
	node := filepath.Join(dev, "sdz")
	if err := unix.Mknod(node, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))); err != nil {
		roottest.Lacks(t, "root", err)
	}
	staged := filepath.Join(t.TempDir(), "device")
	roottest.UnmountAtEnd(t, staged)
	if err := quiet.BindDevice(node, staged); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(node); err != nil {
		t.Fatal(err)
	}
	if number, err := quiet.DeviceAt(staged); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("%d, %v", number, err)
	}
	if err := quiet.Bind(staged, published(t), nil, false); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("bind: %v", err)
	}
	if stats, err := quiet.Stats(staged); err != nil || !stats.Abnormal {
		t.Errorf("%+v, %v", stats, err)
	}
	if err := quiet.Unmount(staged); err != nil {
		t.Error(err)
	}
}

// TestBindThatFails leaves nothing behind: the kubelet may never ask for an unpublish.
func TestBindThatFails(t *testing.T) {
	roottest.Need(t)
	staging, node := target(t), filepath.Join(t.TempDir(), "device")
	roottest.Tmpfs(t, staging, 0)
	if err := os.WriteFile(node, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// A file of a tmpfs stands for a node of devtmpfs.
	if err := os.WriteFile(filepath.Join(staging, "sdz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	roottest.Bind(t, filepath.Join(staging, "sdz"), node)
	for _, source := range []string{staging, node} {
		dir, bound := t.TempDir(), filepath.Join(t.TempDir(), "other")
		to := filepath.Join(dir, "target")
		if err := quiet.Bind(source, to, []string{"no-such-flag"}, false); err == nil {
			t.Errorf("%s was bound", source)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("%v, %v are left", entries, err)
		}
		// What was there before stays.
		if _, err := roottest.Run("cp", "-r", "--no-preserve=all", source, bound); err != nil {
			t.Fatal(err)
		}
		if err := quiet.Bind(source, bound, []string{"no-such-flag"}, false); err == nil {
			t.Errorf("%s was bound", source)
		}
		if _, err := os.Lstat(bound); err != nil {
			t.Error(err)
		}
	}
}

func TestRemoveRefuses(t *testing.T) {
	dir := t.TempDir()
	full, file, link := filepath.Join(dir, "full"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	err := errors.Join(os.MkdirAll(filepath.Join(full, "more"), 0o700), os.WriteFile(file, []byte("data"), 0o600), os.Symlink(dir, link))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{full, file, link} {
		if err := quiet.Remove(path); !errors.Is(err, attach.ErrNotOurs) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestUnmountOfSeveral(t *testing.T) {
	dir := target(t)
	for range 3 {
		if err := unix.Mount("katbox-test", dir, "tmpfs", 0, "size=1m"); err != nil {
			t.Fatal(err)
		}
	}
	mustUnmount(t, dir)
	if _, ok := mountedAt(t, dir); ok {
		t.Error("one is left")
	}
}

// TestUnmountAboveAMount: what is mounted inside is named, not a process that does not exist.
func TestUnmountAboveAMount(t *testing.T) {
	dir := target(t)
	inside := filepath.Join(dir, "inside")
	roottest.Tmpfs(t, dir, 0)
	if err := errors.Join(os.Mkdir(inside, 0o750), unix.Mount("katbox-test", inside, "tmpfs", 0, "size=1m")); err != nil {
		t.Fatal(err)
	}
	err := quiet.Unmount(dir)
	if !errors.Is(err, volume.ErrBusy) || !strings.Contains(err.Error(), inside+" is mounted inside") {
		t.Errorf("unmount: %v", err)
	}
	mustUnmount(t, inside)
	open, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	err = quiet.Unmount(dir)
	if !errors.Is(err, volume.ErrBusy) || !strings.Contains(err.Error(), "a process uses") {
		t.Errorf("unmount what a process uses: %v", err)
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	mustUnmount(t, dir)
}

func TestMakeDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	for range 2 {
		if err := quiet.MakeDir(dir); err != nil {
			t.Error(err)
		}
	}
	if err := quiet.MakeDir(filepath.Join(dir, "a/b")); err == nil {
		t.Error("it made the directory above as well")
	}
}
