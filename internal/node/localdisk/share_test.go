package localdisk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
)

var imagesThatCopy = []kind{imageOnXFS, imageOnBtrfs}

// scattered writes every other block of a file, so that its extents are many.
func scattered(t *testing.T, path, what string) {
	t.Helper()
	const blocks, size = 512, 4096
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	defer file.Close()
	for n := int64(0); n < blocks; n += 2 {
		_, err := file.WriteAt(bytes.Repeat([]byte(what), size/len(what)), n*size)
		must(t, err)
	}
	must(t, file.Sync())
}

// calls notes what is done to files until the end of the test. before is called before each.
func calls(t *testing.T, before func(call string)) *[]string {
	t.Helper()
	var all []string
	kernel.Inject(t, func(call, _ string) error {
		if slices.Contains([]string{"Clone", "CloneRange", "Freeze", "Thaw"}, call) {
			before(call)
			all = append(all, call)
		}
		return nil
	})
	return &all
}

// whileFrozen returns what was done between a freeze and the thaw after it, and before the freeze.
func whileFrozen(t *testing.T, all []string) (before, frozen int) {
	t.Helper()
	freeze, thaw := slices.Index(all, "Freeze"), slices.Index(all, "Thaw")
	if freeze < 0 || thaw < freeze {
		t.Fatalf("no freeze and thaw in %q", all)
	}
	return freeze, thaw - freeze - 1
}

// TestFrozenForChangesAlone: to share the blocks of a file system that a pod uses takes long when they are scattered. All that
// is done before it is frozen.
func TestFrozenForChangesAlone(t *testing.T) {
	each(t, imagesThatCopy, func(t *testing.T, k kind) {
		p := copyingPool(t, k)
		p.backend.(*images).extents = 20
		r := p.make(record("pvc-1", sizeFor(k)))
		path := p.stage(r)
		scattered(t, path+"/old", "old!")
		// A pod that writes to it all the time changes what was shared already.
		rounds, writing := 0, true
		all := calls(t, func(call string) {
			if call == "CloneRange" && writing {
				rounds++
				write(t, path+"/file", fmt.Sprint(rounds))
				fd, err := unix.Open(path, unix.O_DIRECTORY, 0)
				must(t, err)
				must(t, errors.Join(unix.Syncfs(fd), unix.Close(fd)))
			}
			writing = writing && call != "Freeze"
		})
		snapshot, clone := copies(r)
		for _, c := range []local.Record{snapshot, clone} {
			rounds, writing, *all = 0, true, nil
			must(t, p.tryMake(c))
			before, frozen := whileFrozen(t, *all)
			if before < 10 || frozen*3 > before {
				t.Errorf("%s: %d pieces were shared before the freeze, and %d while it was frozen", c.Name, before, frozen)
			}
			if slices.Contains(*all, "Clone") {
				t.Error("all is shared once more at once")
			}
		}
		want := fmt.Sprint(rounds)
		write(t, path+"/file", "later")
		must(t, p.holds(clone, want))
		restored := record("pvc-restored", r.Size)
		restored.Source.Snapshot = snapshot.Name
		p.make(restored)
		clonePath := p.stage(restored)
		got, err := os.ReadFile(clonePath + "/old")
		must(t, err)
		wanted, err := os.ReadFile(path + "/old")
		must(t, err)
		if !bytes.Equal(got, wanted) || len(got) == 0 {
			t.Error("the scattered file differs in the copy")
		}
	})
}

// TestBlockVolumeInUse: its copy is of one moment, so all is shared at once in the end. Most is shared before.
func TestBlockVolumeInUse(t *testing.T) {
	each(t, imagesThatCopy, func(t *testing.T, k kind) {
		p := copyingPool(t, k)
		p.backend.(*images).extents = 20
		r := record("pvc-1", sizeFor(k))
		r.Block = true
		r = p.make(r)
		path := p.stage(r)
		device := filepath.Join(path, DeviceFile)
		scattered(t, device, "old!")
		all := calls(t, func(string) {})
		_, clone := copies(r)
		clone.Block = true
		clone = p.make(clone)
		if last := len(*all) - 1; last < 10 || slices.Index(*all, "Clone") != last {
			t.Errorf("%d steps, the last of which is no copy at once: %q", last+1, *all)
		}
		scattered(t, device, "new!")
		other := p.stage(clone)
		got := make([]byte, 4)
		file, err := os.Open(filepath.Join(other, DeviceFile))
		must(t, err)
		defer file.Close()
		if _, err := file.ReadAt(got, 200*4096); err != nil || string(got) != "old!" {
			t.Errorf("the copy has %q, %v", got, err)
		}
	})
}

// TestPodThatWritesTooMuch: its file system does not stay frozen, the copy is not made, and nothing of it is left.
func TestPodThatWritesTooMuch(t *testing.T) {
	each(t, imagesThatCopy, func(t *testing.T, k kind) {
		p := copyingPool(t, k)
		p.backend.(*images).sharing = sharing{extents: 20, frozen: 0}
		r := p.make(record("pvc-1", sizeFor(k)))
		path := p.stage(r)
		frozen := false
		all := calls(t, func(call string) {
			if call == "Freeze" {
				scattered(t, path+"/more", "more") // to other blocks than those that are shared
			}
			frozen = call == "Freeze" || frozen && call != "Thaw"
		})
		_, clone := copies(r)
		err := p.tryMake(clone)
		wants(t, err, volume.ErrBusy)
		if !strings.Contains(err.Error(), r.Name) {
			t.Errorf("%v does not name the volume", err)
		}
		if frozen {
			t.Error("it is frozen")
		}
		freezes := 0
		for _, call := range *all {
			if call == "Freeze" {
				freezes++
			}
		}
		if freezes != 3 {
			t.Errorf("%d freezes", freezes)
		}
		write(t, path+"/file", "content")
		if there, err := p.dir.Exists(p.place(clone)); err != nil || there {
			t.Errorf("a part is left: %t, %v", there, err)
		}
		// A pod that writes less gets its copy.
		p.backend.(*images).sharing = usualSharing
		p.make(clone)
		must(t, p.holds(clone, "content"))
	})
}

// TestCopyEndsWithItsContext: between two pieces.
func TestCopyEndsWithItsContext(t *testing.T) {
	p := newPool(t, imageOnXFS)
	p.backend.(*images).extents = 20
	r := p.make(record("pvc-1", sizeFor(imageOnXFS)))
	path := p.stage(r)
	scattered(t, path+"/old", "old!")
	ctx, cancel := context.WithCancel(t.Context())
	all := calls(t, func(string) { cancel() })
	_, clone := copies(r)
	must(t, p.Save(clone))
	wants(t, p.Make(ctx, clone), context.Canceled)
	if len(*all) != 1 {
		t.Errorf("it went on: %q", *all)
	}
}
