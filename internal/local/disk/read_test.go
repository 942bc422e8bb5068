package disk

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/files"
	"github.com/katbox/katbox/internal/local"
	"github.com/katbox/katbox/internal/paths"
	"github.com/katbox/katbox/internal/volume"
)

// content returns the names at the top of a tree, and what is in a file there.
func content(t *testing.T, tree *files.Tree, file string) (names, text string) {
	t.Helper()
	entries, _, _, err := tree.List(t.Context(), paths.Path{}, files.ListOptions{Limit: 100, Depth: 1}, nil)
	must(t, err)
	for _, e := range entries {
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

// TestReadOfAVolume: the files of a volume that is staged nowhere can be read. That is in the way of nothing: not of a
// stage, nor of a deletion.
func TestReadOfAVolume(t *testing.T) {
	each(t, all, func(t *testing.T, k kind) {
		p := newPool(t, k)
		r := p.make(record("pvc-1", sizeFor(k)))
		path := p.stage(r)
		write(t, path+"/file", "content")
		must(t, os.Symlink("/etc", path+"/out"))
		p.unstage(r, path)
		tree, err := p.Read(t.Context(), r)
		if k.backend == local.Image {
			wants(t, err, volume.ErrInvalid)
			return
		}
		must(t, err)
		defer tree.Close()
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
		path = p.stage(r)
		write(t, path+"/file", "changed")
		p.unstage(r, path)
		p.delete(r)
		must(t, p.Erase(t.Context()))
		must(t, tree.Close())
		if _, err := p.Read(t.Context(), r); err == nil {
			t.Error("a volume that is gone can be read")
		}
	})
}
