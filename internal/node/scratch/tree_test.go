package scratch

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestTree: the tree is that of the volume, and stays it when the volume is deleted meanwhile.
func TestTree(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		must(t, os.WriteFile(create(t, d, here)+"/file", []byte("data"), 0o600))
		create(t, d, at(pod, "other"))
		tree, err := d.Tree(here)
		must(t, err)
		defer tree.Close()
		path, err := paths.New("file")
		must(t, err)
		f, err := tree.Open(path)
		must(t, err)
		defer f.Close()
		name, _ := discard(t, d, here)
		erase(t, d, name)
		if got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size())); string(got) != "data" || err != nil {
			t.Errorf("of the open file: %q, %v", got, err)
		}
		if _, err := tree.Open(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of what was erased: %v", err)
		}
		page, err := tree.List(t.Context(), paths.Path{}, files.ListOptions{Limit: 10}, nil)
		if err != nil || len(page.Entries) != 0 || page.Next != "" {
			t.Errorf("list of what was erased: %+v, %v", page, err)
		}
		if _, err := d.Tree(here); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("tree of what was erased: %v", err)
		}
	})
}

// TestTreeOfWhatIsNotOurs: what is in the place of a volume, or of its pod, is not read.
func TestTreeOfWhatIsNotOurs(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		create(t, d, here)
		must(t, os.Symlink(string(pod), d.root+"/linked"))
		must(t, os.Symlink(string(vol), d.root+"/"+string(pod)+"/linked"))
		must(t, os.WriteFile(d.root+"/"+string(pod)+"/file", nil, 0o600))
		for _, p := range []volume.Place{at("linked", vol), at(pod, "linked"), at(pod, "file")} {
			if _, err := d.Tree(p); !errors.Is(err, ErrNotOurs) {
				t.Errorf("%s: %v", p, err)
			}
		}
		for _, p := range []volume.Place{at("..", vol), at(pod, ".."), at(trashName, vol), at(pod, "a/b")} {
			if _, err := d.Tree(p); !errors.Is(err, volume.ErrInvalid) {
				t.Errorf("%s: %v", p, err)
			}
		}
	})
}

func TestTreeOfWhatIsMountedOver(t *testing.T) {
	roottest.Need(t)
	eachKernel(t, func(t *testing.T, d *Dir) {
		roottest.Bind(t, t.TempDir(), create(t, d, here))
		if _, err := d.Tree(here); !errors.Is(err, ErrNotOurs) {
			t.Errorf("%v", err)
		}
	})
}
