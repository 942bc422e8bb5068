package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// small is the size in MiB of a device that holds either file system: xfs needs 300.
const small = 320

// device is a loop device.
type device struct {
	path, image string
}

// newDevice makes a loop device of zeros until the end of the test. losetup gets further flags.
func newDevice(t *testing.T, megabytes int, flags ...string) device {
	t.Helper()
	roottest.Need(t)
	roottest.Programs(t, "losetup", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs")
	dir := t.TempDir()
	roottest.Mount(t, "katbox-test", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", 2*megabytes+8))
	d := device{image: filepath.Join(dir, "image")}
	d.resize(t, megabytes)
	d.attach(t, flags...)
	return d
}

func (d *device) attach(t *testing.T, flags ...string) {
	t.Helper()
	out, err := roottest.Run(append(append([]string{"losetup", "--find", "--show"}, flags...), d.image)...)
	if err != nil {
		roottest.Lacks(t, "loop devices", err)
	}
	d.path = out
	t.Cleanup(func() {
		if _, err := roottest.Run("losetup", "--detach", out); err != nil {
			t.Error(err)
		}
	})
}

func (d device) resize(t *testing.T, megabytes int) {
	t.Helper()
	file, err := os.OpenFile(d.image, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = file.Truncate(int64(megabytes) << 20)
		file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// write writes to the device at an offset.
func (d device) write(t *testing.T, offset int64, content string) {
	t.Helper()
	file, err := os.OpenFile(d.path, os.O_WRONLY|unix.O_SYNC, 0)
	if err == nil {
		_, err = file.WriteAt([]byte(content), offset)
		file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// target makes a directory, whose mounts go at the end of the test.
func target(t *testing.T) string {
	t.Helper()
	roottest.Need(t)
	dir := filepath.Join(t.TempDir(), "target")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	roottest.UnmountAtEnd(t, dir)
	return dir
}

// quiet are tools that log nothing, logging ones that count lines.
var quiet = Tools{Log: logr.Discard()}

func logging(lines *[]string) Tools {
	return Tools{Log: funcr.New(func(_, args string) { *lines = append(*lines, args) }, funcr.Options{})}
}

// eachFileSystem runs a test with each of them.
func eachFileSystem(t *testing.T, test func(t *testing.T, fsType string)) {
	for _, fsType := range []string{ext4, xfs} {
		t.Run(fsType, func(t *testing.T) { test(t, fsType) })
	}
}

// formatted makes a device with a file system.
func formatted(t *testing.T, fsType string, megabytes int, flags ...string) device {
	t.Helper()
	d := newDevice(t, megabytes, flags...)
	if err := quiet.Format(t.Context(), d.path, fsType); err != nil {
		t.Fatal(err)
	}
	return d
}

func mustMount(t *testing.T, dev, target, fsType string, readOnly bool, options ...string) {
	t.Helper()
	if err := quiet.Mount(dev, target, fsType, options, readOnly); err != nil {
		t.Fatal(err)
	}
}

func mustUnmount(t *testing.T, target string) {
	t.Helper()
	if err := quiet.Unmount(target); err != nil {
		t.Fatal(err)
	}
}
