package localdisk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// spoil changes an image that nothing uses, with debugfs.
func spoil(t *testing.T, image string, requests ...string) {
	t.Helper()
	for _, request := range append(requests, "set_super_value state 2") {
		if out, err := roottest.Run("debugfs", "-w", "-R", request, image); err != nil {
			t.Fatal(err, out)
		}
	}
}

func (p *testPool) image(name string) string {
	return filepath.Join(p.path, volumesName, name, imageName)
}

// TestDamagedImage: the error names the image, not its loop device, which is gone by then. The command in it helps.
func TestDamagedImage(t *testing.T) {
	p := newPool(t, imageOnExt4)
	r := p.make(record("pvc-1", sizeFor(imageOnExt4)))
	image := p.image(r.Name)
	// The inode of the top directory: no repair without a person.
	spoil(t, image, "clri <2>")
	path := target(t)
	err := p.Stage(t.Context(), r, path, nil, false)
	if err == nil || strings.Contains(err.Error(), "/dev/loop") || !strings.Contains(err.Error(), image+" has errors") {
		t.Fatalf("%v does not name %s", err, image)
	}
	_, command, found := strings.Cut(err.Error(), "run ")
	command, _, ends := strings.Cut(command, " on the node")
	if !found || !ends {
		t.Fatalf("%v has no command", err)
	}
	// It asks whether it may, so it is answered here. It ends with 1 if it corrected something.
	if out, err := roottest.Run("sh", "-c", command+" -y || [ $? -le 1 ]"); err != nil {
		t.Fatal(out, err)
	}
	must(t, p.Stage(t.Context(), r, path, nil, false))
	p.unstage(r, path)
	p.delete(r)
}

// TestOtherDamagedImages: whatever fails with an image names it, and the log says whose it is.
func TestOtherDamagedImages(t *testing.T) {
	p := newPool(t, imageOnXFS)
	r := record("pvc-xfs", 300*mib)
	r.FSType = "xfs"
	r = p.make(r)
	file, err := os.OpenFile(p.image(r.Name), os.O_RDWR, 0)
	must(t, err)
	_, err = file.WriteAt(make([]byte, 4096), 0)
	must(t, err)
	must(t, file.Close())
	err = p.Stage(t.Context(), r, target(t), nil, false)
	if err == nil || strings.Contains(err.Error(), "/dev/loop") || !strings.Contains(err.Error(), p.image(r.Name)) {
		t.Errorf("%v does not name %s", err, p.image(r.Name))
	}

	var lines []string
	p.Log = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	p.tools.Log = p.Log
	r = p.make(record("pvc-ext4", sizeFor(imageOnXFS)))
	spoil(t, p.image(r.Name), "set_super_value free_blocks_count 1") // fsck corrects that by itself
	p.stage(r)
	if all := strings.Join(lines, "\n"); !strings.Contains(all, "fsck corrected") || !strings.Contains(all, r.Name) {
		t.Errorf("the log does not name the volume: %s", all)
	}
}

// TestHeldDevice is not told as mounted: nobody would find a mount.
func TestHeldDevice(t *testing.T) {
	p := newPool(t, imageOnExt4)
	r := record("pvc-1", sizeFor(imageOnExt4))
	r.Block = true
	r = p.make(r)
	path := p.stage(r)
	loops, err := p.loops(r.Name)
	if err != nil || len(loops) != 1 {
		t.Fatalf("%q, %v", loops, err)
	}
	for _, flags := range []int{os.O_RDONLY | unix.O_EXCL, os.O_RDONLY} {
		holder, err := os.OpenFile("/dev/"+loops[0], flags, 0)
		must(t, err)
		err = p.Locations.Unstage(t.Context(), r.Name, path)
		wants(t, err, volume.ErrBusy)
		if text := err.Error(); strings.Contains(text, loops[0]+" is mounted;") || !strings.Contains(text, "fuser -v /dev/"+loops[0]) {
			t.Errorf("opened with %#x: %v", flags, err)
		}
		must(t, holder.Close())
		must(t, p.Locations.Unstage(t.Context(), r.Name, path))
		must(t, p.Stage(t.Context(), r, path, nil, false))
		if loops, err = p.loops(r.Name); err != nil || len(loops) != 1 {
			t.Fatalf("%q, %v", loops, err)
		}
	}
}

// TestSectors: those of a block volume have 4096 bytes, as the documents say.
func TestSectors(t *testing.T) {
	p := newPool(t, imageOnExt4)
	r := record("pvc-1", sizeFor(imageOnExt4))
	r.Block = true
	r = p.make(r)
	device, err := os.OpenFile(filepath.Join(p.stage(r), DeviceFile), os.O_RDONLY|unix.O_DIRECT, 0)
	must(t, err)
	defer device.Close()
	size, err := unix.IoctlGetInt(int(device.Fd()), unix.BLKSSZGET)
	if err != nil || size != loopBlock || loopBlock != 4096 {
		t.Errorf("%d bytes, %v", size, err)
	}
}

// TestPartOfAnotherDevice names the device that a loop device is part of.
func TestPartOfAnotherDevice(t *testing.T) {
	block := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(block, "loop1/holders/dm-3"), 0o700))
	must(t, os.MkdirAll(filepath.Join(block, "loop2/holders"), 0o700))
	for name, want := range map[string]string{"loop1": "part of dm-3", "loop2": "fuser -v /dev/loop2", "loop3": "fuser -v /dev/loop3"} {
		if err := heldDevice(block, name); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
