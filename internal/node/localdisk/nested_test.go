package localdisk

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// copies are the two kinds of a copy of a volume.
func copies(of local.Record) (snapshot, clone local.Record) {
	snapshot, clone = record("snap-1", of.Size), record("pvc-copy", of.Size)
	snapshot.Of, clone.Source.Volume = of.Name, of.Name
	return snapshot, clone
}

// TestNestedSubvolumes: the kernel's snapshot has an empty directory in place of a subvolume that a pod has made in its
// volume. No such copy is made.
func TestNestedSubvolumes(t *testing.T) {
	p := newPool(t, onBtrfs)
	r := p.make(record("pvc-1", 16*mib))
	path := p.stage(r)
	inner := func(name string) {
		t.Helper()
		if out, err := roottest.AsPod(path, "btrfs", "subvolume", "create", name); err != nil {
			t.Fatal(out, err)
		}
	}
	remove := func(name string) {
		t.Helper()
		if out, err := roottest.Run("btrfs", "subvolume", "delete", path+"/"+name); err != nil {
			t.Fatal(out, err)
		}
	}
	must(t, os.MkdirAll(path+"/a/b", 0o777))
	must(t, os.Chmod(path+"/a/b", 0o777))
	snapshot, clone := copies(r)
	refused := func(name string) {
		t.Helper()
		for _, c := range []local.Record{snapshot, clone} {
			err := p.tryMake(c)
			wants(t, err, volume.ErrInvalid)
			if !strings.Contains(err.Error(), `"`+name+`"`) {
				t.Errorf("%s: %v does not name %s", c.Name, err, name)
			}
			if there, err := p.dir.Exists(p.place(c)); err != nil || there {
				t.Errorf("a part of %s is left: %t, %v", c.Name, there, err)
			}
		}
	}
	inner("a/b/inner")
	write(t, path+"/a/b/inner/file", "content")
	refused("a/b/inner")

	// While no pod uses it, and by the next daemon.
	p.unstage(r, path)
	p.reopen()
	refused("a/b/inner")
	tree, end := p.show(r)
	if names, text := content(t, tree, "a/b/inner/file"); names != "a" || text != "content" {
		t.Errorf("a reader sees %q and %q in the inner subvolume", names, text)
	}
	must(t, tree.Close())
	end()
	path = p.stage(r)

	// More than the kernel tells of at once.
	const many = 300
	for n := range many {
		inner(fmt.Sprintf("n%d", n))
	}
	if err := p.tryMake(snapshot); err == nil {
		t.Error("a snapshot was made")
	}
	for n := range many {
		remove(fmt.Sprintf("n%d", n))
	}
	remove("a/b/inner")
	for _, c := range []local.Record{snapshot, clone} {
		p.delete(p.make(c))
	}
	must(t, p.clean())
}

// TestNestedMeanwhile: a subvolume that a pod makes between the look and the copy is not missed.
func TestNestedMeanwhile(t *testing.T) {
	p := newPool(t, onBtrfs)
	r := p.make(record("pvc-1", 16*mib))
	path := p.stage(r)
	snapshot, clone := copies(r)
	for n, c := range []local.Record{snapshot, clone} {
		name := fmt.Sprintf("late%d", n)
		kernel.Inject(t, func(call, _ string) error {
			if call == "SnapshotSubvolume" {
				if out, err := roottest.AsPod(path, "btrfs", "subvolume", "create", name); err != nil {
					t.Error(out, err)
				}
			}
			return nil
		})
		wants(t, p.tryMake(c), volume.ErrInvalid)
		if out, err := roottest.Run("btrfs", "subvolume", "delete", path+"/"+name); err != nil {
			t.Fatal(out, err)
		}
		if there, err := p.dir.Exists(p.place(c)); err != nil || there {
			t.Errorf("a part of %s is left: %t, %v", c.Name, there, err)
		}
	}
	must(t, p.clean())
}
