package disk

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/testing/attachtest"
	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestGrowXFS(t *testing.T) { testGrow(t, xfs) }

// TestArrayGrowExt4 is in a virtual machine: CAP_SYS_RESOURCE is not everywhere.
func TestArrayGrowExt4(t *testing.T) {
	attachtest.Need(t)
	testGrow(t, ext4)
}

func testGrow(t *testing.T, fsType string) {
	t.Run("disk", func(t *testing.T) {
		d, dir := formatted(t, fsType, small), target(t)
		mustMount(t, d.path, dir, fsType, false)
		if size, err := quiet.Grow(dir); err != nil || size != small<<20 {
			t.Fatalf("as large as it is: %d, %v", size, err)
		}
		before := totalBytes(t, dir)
		d.resize(t, 2*small)
		if _, err := roottest.Run("losetup", "--set-capacity", d.path); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if size, err := quiet.Grow(dir); err != nil || size != 2*small<<20 {
				t.Fatalf("%d, %v", size, err)
			}
		}
		if after := totalBytes(t, dir); after < before*19/10 {
			t.Errorf("%d bytes, %d before", after, before)
		}
		mustUnmount(t, dir)
		mustMount(t, d.path, dir, fsType, true)
		d.resize(t, 3*small)
		if _, err := roottest.Run("losetup", "--set-capacity", d.path); err != nil {
			t.Fatal(err)
		}
		if _, err := quiet.Grow(dir); !errors.Is(err, unix.EROFS) {
			t.Errorf("read-only: %v", err)
		}
		mustUnmount(t, dir)
		mustBeClean(t, d, fsType)
	})
	// The file system of a clone is as large as its origin, whatever its device is.
	t.Run("clone", func(t *testing.T) {
		origin, clone, dir := formatted(t, fsType, small), newDevice(t, 2*small), target(t)
		if out, err := exec.Command("dd", "if="+origin.path, "of="+clone.path, "bs=1M", "conv=sparse,fsync").CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
		mustMount(t, clone.path, dir, fsType, false)
		before := totalBytes(t, dir)
		if _, err := quiet.Grow(dir); err != nil {
			t.Fatal(err)
		}
		if after := totalBytes(t, dir); after < before*19/10 {
			t.Errorf("%d bytes, %d before", after, before)
		}
	})
}

func totalBytes(t *testing.T, dir string) int64 {
	t.Helper()
	stats, err := quiet.Stats(dir)
	if err != nil {
		t.Fatal(err)
	}
	return stats.Space.Total.Bytes
}

// TestGrowWithoutTheCapability: the error says what the daemon lacks.
func TestGrowWithoutTheCapability(t *testing.T) {
	d, dir := formatted(t, ext4, small), target(t)
	mustMount(t, d.path, dir, ext4, false)
	kernel.Inject(t, func(call, _ string) error {
		if call == "GrowExt4" {
			return unix.EPERM
		}
		return nil
	})
	if _, err := quiet.Grow(dir); !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "CAP_SYS_RESOURCE") {
		t.Error(err)
	}
}

func TestGrowOfWhatIsNoDisk(t *testing.T) {
	dir := target(t)
	for what, call := range map[string]func() error{
		"grow":  func() error { _, err := quiet.Grow(dir); return err },
		"stats": func() error { _, err := quiet.Stats(dir); return err },
	} {
		if err := call(); !errors.Is(err, volume.ErrNotFound) {
			t.Errorf("%s where nothing is mounted: %v", what, err)
		}
	}
	roottest.Tmpfs(t, dir, 0)
	if _, err := quiet.Grow(dir); !errors.Is(err, attach.ErrNotOurs) {
		t.Errorf("of a tmpfs: %v", err)
	}
}
