package localdisk

import (
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// content returns the names at the top of a tree, and what is in a file there.
func content(t *testing.T, tree *files.Tree, file string) (names, text string) {
	t.Helper()
	page, err := tree.List(t.Context(), paths.Path{}, files.ListOptions{Limit: 100, Depth: 1}, nil)
	must(t, err)
	for _, e := range page.Entries {
		names += e.Name + " "
	}
	f, err := tree.Open(paths.Path{}.Join(file))
	must(t, err)
	defer f.Close()
	b := make([]byte, 100)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return strings.TrimSpace(names), string(b[:n])
}

// show begins to read a volume, until the end of the test.
func (p *testPool) show(r local.Record) (*files.Tree, func()) {
	p.t.Helper()
	s, err := p.Show(p.t.Context(), r)
	must(p.t, err)
	end := sync.OnceFunc(func() {
		if err := s.End(); err != nil {
			p.t.Error(err)
		}
	})
	p.t.Cleanup(end)
	tree, err := s.Tree()
	must(p.t, err)
	p.t.Cleanup(func() { tree.Close() })
	return tree, end
}

// TestReadOfAVolume: the files of a volume that is staged nowhere can be read. It looks mounted nowhere meanwhile, and
// once its readers have left, all goes on as before.
func TestReadOfAVolume(t *testing.T) {
	each(t, all, func(t *testing.T, k kind) {
		for _, fsType := range []string{"ext4", "xfs"} {
			if fsType == "xfs" && (k.backend != local.Image || k.fsType != "xfs") {
				continue
			}
			t.Run(fsType, func(t *testing.T) { testRead(t, k, fsType) })
		}
	})
}

func testRead(t *testing.T, k kind, fsType string) {
	p := newPool(t, k)
	r := record("pvc-1", sizeFor(k))
	if r.FSType = fsType; fsType == "xfs" {
		r.Size = smallest["xfs"] * mebibyte
	}
	r = p.make(r)
	path := p.stage(r)
	write(t, path+"/file", "content")
	must(t, os.Symlink("/etc", path+"/out"))
	p.unstage(r, path)
	before := p.sum(r)
	for range 2 { // a reading after another one
		tree, end := p.show(r)
		names, text := content(t, tree, "file")
		if all := strings.Fields(names); !slices.Contains(all, "file") || !slices.Contains(all, "out") || text != "content" {
			t.Errorf("%q with %q", names, text)
		}
		if _, err := tree.Stat(paths.Path{}.Join("out").Join("passwd")); err == nil {
			t.Error("a symbolic link leads out of the volume")
		}
		if got := p.mounted("pvc-1"); got != nil {
			t.Errorf("a reader makes it look mounted at %q", got)
		}
		p.shownToNobodyElse(r)
		must(t, tree.Close())
		end()
		if got, err := p.loops("pvc-1"); err != nil || got != nil {
			t.Fatalf("%q are left, %v", got, err)
		}
	}
	if after := p.sum(r); after != before {
		t.Error("reading has changed the image")
	}
	path = p.stage(r)
	reads(t, path+"/file", "content")
	write(t, path+"/file", "changed")
	p.unstage(r, path)
	p.delete(r)
	must(t, p.Erase(t.Context()))
	if _, err := p.Show(t.Context(), r); err == nil {
		t.Error("a volume that is gone can be read")
	}
}

// sum is a checksum of the image of a volume; empty where there is none.
func (p *testPool) sum(r local.Record) string {
	p.t.Helper()
	if p.kind.backend != local.Image {
		return ""
	}
	image, err := p.openImage(r, os.O_RDONLY)
	must(p.t, err)
	defer image.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, image)
	must(p.t, err)
	return string(sum.Sum(nil))
}

// shownToNobodyElse checks that no process has a mount of an image's device in its mount table.
func (p *testPool) shownToNobodyElse(r local.Record) {
	p.t.Helper()
	tables, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	must(p.t, err)
	devices, err := p.loops(r.Name)
	must(p.t, err)
	if want := p.kind.backend == local.Image; want != (len(devices) == 1) {
		p.t.Fatalf("the devices are %q", devices)
	}
	for _, table := range tables {
		text, err := os.ReadFile(table)
		for _, device := range devices {
			if err == nil && strings.Contains(string(text), "/dev/"+device+" ") {
				p.t.Errorf("%s has a mount of %s", table, device)
			}
		}
	}
	for _, device := range devices {
		l, err := openLoop(device, os.O_RDONLY)
		must(p.t, err)
		if l.Flags&kernel.LoopReadOnly == 0 || l.Flags&kernel.LoopAutoclear == 0 {
			p.t.Errorf("%s has the flags %#x", device, l.Flags)
		}
		must(p.t, l.Close())
	}
}

// TestEndWaitsForReaders: as long as a file is open, the volume is in use, whatever handles were closed: it is neither
// staged nor deleted.
func TestEndWaitsForReaders(t *testing.T) {
	p := newPool(t, imageOnXFS)
	r := p.make(record("pvc-1", sizeFor(imageOnXFS)))
	path := p.stage(r)
	write(t, path+"/file", "content")
	p.unstage(r, path)
	s, err := p.Show(t.Context(), r)
	must(t, err)
	tree, err := s.Tree()
	must(t, err)
	file, err := tree.Open(paths.Path{}.Join("file"))
	must(t, err)
	must(t, tree.Close())
	ended := make(chan error)
	go func() { ended <- s.End() }()
	wants(t, p.Stage(t.Context(), r, target(t), nil, false), volume.ErrBusy)
	wants(t, p.Trash(r), pools.ErrInUse)
	_, err = p.Show(t.Context(), r)
	wants(t, err, volume.ErrUnavailable)
	select {
	case err := <-ended:
		t.Fatalf("it ended while a file is open: %v", err)
	default:
	}
	b := make([]byte, 7)
	if _, err := file.ReadAt(b, 0); err != nil || string(b) != "content" {
		t.Errorf("read %q, %v", b, err)
	}
	must(t, file.Close())
	must(t, <-ended)
	p.delete(r)
}

// TestReadAfterAPowerCut: a file system whose journal has changes is not shown without them, and not changed. Once it
// was mounted in order it is read again.
func TestReadAfterAPowerCut(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs"} {
		t.Run(fsType, func(t *testing.T) {
			p := newPoolOn(t, diskOf(t, imageOnXFS, 1024), imageOnXFS)
			r := record("pvc-1", smallest["xfs"]*mebibyte)
			r.FSType = fsType
			r = p.make(r)
			path := p.stage(r)
			write(t, path+"/file", "content")
			dir, err := os.Open(path)
			must(t, err)
			must(t, unix.Syncfs(int(dir.Fd())))
			must(t, dir.Close())
			// What is on the disk now is what a power cut leaves.
			cut := record("pvc-2", r.Size)
			cut.FSType = fsType
			cut = p.make(cut)
			image := func(r local.Record) string { return filepath.Join(p.path, volumesName, r.Name, imageName) }
			if out, err := roottest.Run("cp", image(r), image(cut)); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			before := p.sum(cut)
			_, err = p.Show(t.Context(), cut)
			wants(t, err, volume.ErrInvalid)
			if !strings.Contains(err.Error(), "was not unmounted in order") {
				t.Error(err)
			}
			if after := p.sum(cut); after != before {
				t.Error("an attempt to read has changed the image")
			}
			if got, err := p.loops(cut.Name); err != nil || got != nil {
				t.Errorf("%q are left, %v", got, err)
			}
			path = p.stage(cut)
			p.unstage(cut, path)
			tree, _ := p.show(cut)
			if _, text := content(t, tree, "file"); text != "content" {
				t.Errorf("read %q", text)
			}
			must(t, tree.Close())
		})
	}
}

// TestReadOfCopies: a copy has the UUID of its origin, and both are read while a third is in use.
func TestReadOfCopies(t *testing.T) {
	p := newPoolOn(t, diskOf(t, imageOnXFS, 2048), imageOnXFS)
	if !p.Describe().Copies {
		t.Fatal("the file system cannot share blocks")
	}
	r := record("pvc-1", smallest["xfs"]*mebibyte)
	r.FSType = "xfs"
	r = p.make(r)
	path := p.stage(r)
	write(t, path+"/file", "content")
	p.unstage(r, path)
	for _, name := range []string{"pvc-2", "pvc-3"} {
		clone := record(name, r.Size)
		clone.FSType, clone.Source.Volume = "xfs", r.Name
		clone = p.make(clone)
		if name == "pvc-3" {
			p.stage(clone)
			continue
		}
		tree, _ := p.show(clone)
		if _, text := content(t, tree, "file"); text != "content" {
			t.Errorf("read %q", text)
		}
	}
	tree, _ := p.show(r)
	if _, text := content(t, tree, "file"); text != "content" {
		t.Errorf("read %q", text)
	}
}

// TestReadOfWhatIsNoFileSystem: a block volume may hold anything, which the kernel is not made to take for a file
// system; and an image that is damaged is not shown.
func TestReadOfWhatIsNoFileSystem(t *testing.T) {
	p := newPool(t, imageOnExt4)
	block := record("pvc-1", 16*mib)
	block.Block = true
	block = p.make(block)
	damaged := p.make(record("pvc-2", 16*mib))
	image, err := p.openImage(damaged, os.O_RDWR)
	must(t, err)
	_, err = image.WriteAt(make([]byte, 64<<10), 0)
	must(t, errors.Join(err, image.Close()))
	_, err = p.Show(t.Context(), block)
	wants(t, err, volume.ErrInvalid)
	if _, err := p.Show(t.Context(), damaged); err == nil {
		t.Error("a damaged image can be read")
	}
	for _, name := range []string{"pvc-1", "pvc-2"} {
		if got, err := p.loops(name); err != nil || got != nil {
			t.Errorf("%q are left of %s, %v", got, name, err)
		}
	}
}

// TestReadWithoutALoopDevice fails before each change that showing an image makes: nothing is left of it.
func TestReadWithoutALoopDevice(t *testing.T) {
	p := newPool(t, imageOnExt4)
	r := p.make(record("pvc-1", 16*mib))
	for _, call := range []string{"LoopAdd", "LoopConfigure", "WriteAt", "MountUnattached"} {
		failing := true
		kernel.Inject(t, func(what, _ string) error {
			if failing && what == call {
				return unix.ENOSPC
			}
			return nil
		})
		_, err := p.Show(t.Context(), r)
		failing = false
		wants(t, err, unix.ENOSPC)
		if unavailable := errors.Is(err, volume.ErrUnavailable); unavailable != (call != "MountUnattached") {
			t.Errorf("%s: %v", call, err)
		}
		if got, err := p.loops("pvc-1"); err != nil || got != nil {
			t.Errorf("%q are left after %s", got, call)
		}
	}
	tree, _ := p.show(r)
	must(t, tree.Close())
}
