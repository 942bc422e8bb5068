package localdisk

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestExt4GrowsBeforeItIsMounted where the kernel refuses to grow it later, for which it asks for a capability.
func TestExt4GrowsBeforeItIsMounted(t *testing.T) {
	each(t, []kind{imageOnExt4, imageOnXFS}, func(t *testing.T, k kind) {
		p := newPool(t, k)
		noProgram := false
		kernel.Inject(t, func(call, on string) error {
			switch {
			case call == "GrowExt4":
				return unix.EPERM
			case noProgram && call == "Run" && filepath.Base(on) == "resize2fs":
				return unix.ENOENT
			}
			return nil
		})
		has := func(path string, least int64) {
			t.Helper()
			stats, err := p.Stats(record("pvc-1", 0), path)
			if got := stats.Space.Total.Bytes; err != nil || got < least*3/4 || got > least {
				t.Errorf("it has %d bytes, %v, want nearly %d", got, err, least)
			}
			reads(t, path+"/file", "content")
		}
		r := p.make(record("pvc-1", 32*mib))
		path := p.stage(r)
		write(t, path+"/file", "content")
		p.unstage(r, path)

		r.Size = 64 * mib // nothing uses it
		must(t, p.Grow(t.Context(), r))
		path = p.stage(r) // which grows it then, as the node does
		has(path, 64*mib)

		r.Size = 128 * mib // while it is used
		if err := p.Grow(t.Context(), r); !errors.Is(err, unix.EPERM) {
			t.Errorf("grow while it is used: %v", err)
		}
		has(path, 64*mib)
		p.unstage(r, path)
		noProgram = true
		path = target(t)
		must(t, p.Stage(t.Context(), r, path, nil, false)) // with the size that it has
		has(path, 64*mib)
		p.unstage(r, path)
		noProgram = false
		path = p.stage(r)
		has(path, 128*mib)
		if got := p.setAside("pvc-1"); got < r.Size {
			t.Errorf("the image has %d bytes of the disk, want %d", got, r.Size)
		}
		p.unstage(r, path)
		if out, err := roottest.Run("e2fsck", "-f", "-n", filepath.Join(p.path, volumesName, "pvc-1", imageName)); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
