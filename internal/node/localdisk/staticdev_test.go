package localdisk

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// staticDev puts a /dev in place that gets no nodes by itself, as a node in a container has (kind, minikube with docker).
func staticDev(t *testing.T) {
	t.Helper()
	roottest.Need(t)
	const dev = "/dev"
	var control unix.Stat_t
	if err := unix.Stat(loopControl, &control); err != nil {
		roottest.Lacks(t, "loop devices", err)
	}
	must(t, unix.Mount("katbox-test", dev, "tmpfs", 0, "size=1m"))
	t.Cleanup(func() { must(t, unix.Unmount(dev, unix.UMOUNT_NOFOLLOW)) }) // and not what is below it
	for path, number := range map[string]uint64{
		loopControl: control.Rdev, "/dev/null": unix.Mkdev(1, 3), "/dev/zero": unix.Mkdev(1, 5), "/dev/urandom": unix.Mkdev(1, 9),
	} {
		must(t, unix.Mknod(path, unix.S_IFCHR|0o666, int(number)))
	}
}

// TestStaticDev: an image is attached where nothing but the daemon makes the node of its loop device.
func TestStaticDev(t *testing.T) {
	each(t, []kind{imageOnXFS}, func(t *testing.T, k kind) {
		disk := newDisk(t, k)
		staticDev(t)
		p := newPoolOn(t, disk, k)
		if found := p.Describe(); found.Failed != "" {
			t.Fatalf("the pool says %s", found.Failed)
		}
		r := p.make(record("pvc-files", sizeFor(k)))
		path := p.stage(r)
		write(t, path+"/file", "content")
		p.reopen()
		p.unstage(r, path)
		must(t, p.holds(r, "content"))

		block := record("pvc-block", sizeFor(k))
		block.Block = true
		block = p.make(block)
		path = p.stage(block)
		if targets := p.mounted(block.Name); len(targets) != 1 || targets[0] != filepath.Join(path, DeviceFile) {
			t.Errorf("the block volume is at %q", targets)
		}
		// A person removes the node while the volume is staged: it gets no second device.
		loops, err := p.loops(block.Name)
		if err != nil || len(loops) != 1 {
			t.Fatalf("%q, %v", loops, err)
		}
		must(t, unix.Unlink("/dev/"+loops[0]))
		must(t, p.Locations.Unstage(t.Context(), block.Name, path))
		if loops, err := p.loops(block.Name); err != nil || len(loops) > 0 {
			t.Errorf("%q is left, %v", loops, err)
		}
		p.delete(block)
		p.delete(r)
	})
}

// TestNoNodeCanBeMade: such a pool is not Ready, and is once the cause has gone.
func TestNoNodeCanBeMade(t *testing.T) {
	for _, tt := range []struct {
		name, says  string
		spoil, mend func(t *testing.T)
	}{
		{
			"read-only", "read-only file system",
			func(t *testing.T) { must(t, unix.Mount("", "/dev", "", unix.MS_REMOUNT|unix.MS_RDONLY, "")) },
			func(t *testing.T) { must(t, unix.Mount("", "/dev", "", unix.MS_REMOUNT, "")) },
		},
		{
			"nodes of other devices", "remove it",
			func(t *testing.T) {
				otherNodes(t, func(path string) error { return unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 3))) })
			},
			func(t *testing.T) { otherNodes(t, unix.Unlink) },
		},
		{
			"files", "remove it",
			func(t *testing.T) {
				otherNodes(t, func(path string) error { return unix.Mknod(path, unix.S_IFIFO|0o600, 0) })
			},
			func(t *testing.T) { otherNodes(t, unix.Unlink) },
		},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			k := imageOnExt4
			disk := newDisk(t, k)
			staticDev(t)
			tt.spoil(t)
			p := newPoolOn(t, disk, k)
			if found := p.Describe(); !strings.Contains(found.Failed, tt.says) || found.Backend != local.Image {
				t.Errorf("the pool says %q, want %q", found.Failed, tt.says)
			}
			wants(t, p.tryMake(record("pvc-a", sizeFor(k))), volume.ErrUnavailable)
			if _, _, err := p.Look(); err != nil || p.Describe().Failed == "" {
				t.Errorf("after a look: %q, %v", p.Describe().Failed, err)
			}
			tt.mend(t)
			if _, _, err := p.Look(); err != nil || p.Describe().Failed != "" {
				t.Errorf("afterwards: %q, %v", p.Describe().Failed, err)
			}
			p.delete(p.make(record("pvc-a", sizeFor(k))))
			must(t, p.clean())
		})
	}
}

// otherNodes does something with the path of each loop device that may be the next one.
func otherNodes(t *testing.T, do func(path string) error) {
	t.Helper()
	const most = 200
	for n := range most {
		must(t, do(fmt.Sprintf("/dev/loop%d", firstLoop+n)))
	}
}
