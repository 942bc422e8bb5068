package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/roottest/hostile"
)

// walked is what a walk visits, in its order.
func walked(t *testing.T, tree *Tree, p paths.Path) (found []string) {
	t.Helper()
	must(t, tree.Walk(t.Context(), p, nil, func(e Entry, _ func() (*File, error)) error {
		found = append(found, e.Path.String())
		return nil
	}))
	return found
}

func TestWalk(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		want := []string{"", "a", "a/b", "a/b/c", "a/b/c/file", "a/file", "d", "file"}
		must(t, os.MkdirAll(dir+"/a/b/c", 0o700))
		must(t, os.Mkdir(dir+"/d", 0o700))
		for _, f := range []string{"file", "a/file", "a/b/c/file"} {
			must(t, os.WriteFile(filepath.Join(dir, f), []byte(f), 0o600))
		}
		got := walked(t, tree, paths.Path{})
		if again := walked(t, tree, paths.Path{}); !slices.Equal(got, again) {
			t.Errorf("first %q, then %q", got, again)
		}
		for i, p := range got {
			if above := strings.TrimSuffix(filepath.Dir(p), "."); i > 0 && !slices.Contains(got[:i], above) {
				t.Errorf("%q comes before the directory it is in", p)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		for from, want := range map[string][]string{"a/file": {"a/file"}, "d": {"d"}, "a/b/c": {"a/b/c", "a/b/c/file"}} {
			if got := walked(t, tree, path(t, from)); !slices.Equal(got, want) {
				t.Errorf("from %s: %q", from, got)
			}
		}
		visited := 0
		must(t, tree.Walk(t.Context(), paths.Path{}, nil, func(e Entry, _ func() (*File, error)) error {
			visited++
			if e.Name == "a" {
				return fs.SkipDir
			}
			return nil
		}))
		if visited != 4 {
			t.Errorf("%d visited without a", visited)
		}
	})
}

// TestWalkEnds: an error of fn, of the pace or of the context ends the walk, and is returned as it
// is.
func TestWalkEnds(t *testing.T) {
	dir := t.TempDir()
	tree := openTree(t, dir, false)
	const files = 10 * paceEvery
	for i := range files {
		must(t, os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o600))
	}
	enough := errors.New("enough")
	paces, visits := 0, 0
	err := tree.Walk(t.Context(), paths.Path{}, func(context.Context) error {
		if paces++; paces == 3 {
			return enough
		}
		return nil
	}, func(Entry, func() (*File, error)) error { visits++; return nil })
	// The top comes before the first pause.
	if err != enough || visits != 1+2*paceEvery { //nolint:errorlint // as it is
		t.Errorf("after %d visits: %v", visits, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	visits = 0
	err = tree.Walk(ctx, paths.Path{}, nil, func(Entry, func() (*File, error)) error { visits++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || visits != 1 {
		t.Errorf("after cancel and %d visits: %v", visits, err)
	}
	err = tree.Walk(t.Context(), paths.Path{}, nil, func(Entry, func() (*File, error)) error { return enough })
	if err != enough { //nolint:errorlint // as it is
		t.Errorf("of fn: %v", err)
	}
}

// TestWalkDeep goes through trees that are deeper than the handles it may hold, and back, and opens
// the file in each directory.
func TestWalkDeep(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		const depth = 3 * beneath.MaxOpen
		hostile.Deep(t, dir, depth, "d")
		const branches = 3
		for i := range branches {
			hostile.Deep(t, filepath.Join(dir, strings.Repeat("d/", 15)), depth, fmt.Sprint("b", i))
		}
		hostile.FewFiles(t, beneath.MaxOpen+20)
		seen := map[paths.Path]bool{}
		must(t, tree.Walk(t.Context(), paths.Path{}, nil, func(e Entry, open func() (*File, error)) error {
			if seen[e.Path] || e.TooDeep {
				t.Errorf("twice, or too deep: %q", e.Path)
			}
			seen[e.Path] = true
			if e.Type != Regular {
				return nil
			}
			f, err := open()
			if err == nil {
				f.Close()
			}
			return err
		}))
		// The branches share a file with the directory that they are in.
		if want := 1 + 2*(1+branches)*depth - branches; len(seen) != want {
			t.Errorf("%d entries, want %d", len(seen), want)
		}
	})
}

// TestWalkVeryDeep: the paths, which a walk needs and a pod chooses, do not take all memory.
func TestWalkVeryDeep(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		const depth = 400
		hostile.Deep(t, dir, depth, strings.Repeat("n", 200))
		entries, deep := 0, 0
		before := int64(alive())
		must(t, tree.Walk(t.Context(), paths.Path{}, nil, func(e Entry, _ func() (*File, error)) error {
			entries++
			if len(e.Path.String()) > maxWalkPath+256 {
				t.Fatalf("a path of %d bytes", len(e.Path.String()))
			}
			if e.TooDeep {
				deep++
				if grown := int64(alive()) - before; grown > 2<<20 {
					t.Errorf("%d bytes at the bottom, want at most 2 MiB", grown)
				}
			}
			return nil
		}))
		if want := maxWalkPath / 201; deep != 1 || entries < 2*want || entries > 2*want+4 {
			t.Errorf("%d entries, %d too deep", entries, deep)
		}
	})
}

// TestWalkWhileMoved: whatever is moved meanwhile, a walk does not leave the tree.
func TestWalkWhileMoved(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		hostile.Deep(t, dir, 2*beneath.MaxOpen, "d")
		outside := filepath.Join(filepath.Dir(dir), "outside")
		depth := 0
		err := tree.Walk(t.Context(), paths.Path{}, nil, func(e Entry, _ func() (*File, error)) error {
			if e.Name == "secret" {
				t.Error("outside")
			}
			if depth = max(depth, len(e.Path.Elements())); depth == 2*beneath.MaxOpen && e.Type == Directory {
				depth++
				// The handles above are closed: the way back leads through "..".
				return os.Rename(filepath.Join(dir, strings.Repeat("d/", 20)), outside+"/d")
			}
			return nil
		})
		if !errors.Is(err, beneath.ErrMoved) {
			t.Errorf("%v, want %v", err, beneath.ErrMoved)
		}
	})
}

// TestHostileTrees reads all that a pod may leave, on all that a working directory may be on.
func TestHostileTrees(t *testing.T) {
	for _, fstype := range []string{"ext4", "xfs", "btrfs"} {
		if roottest.LeftOut(fstype) {
			continue
		}
		t.Run(fstype, func(t *testing.T) {
			root := roottest.FileSystem(t, fstype, 384)
			for i, tt := range hostile.Trees {
				dir := fmt.Sprintf("%s/%d/data", root, i)
				must(t, os.MkdirAll(dir, 0o700))
				t.Run(tt.Name, func(t *testing.T) { tt.Fill(t, dir) })
				for _, old := range []bool{false, true} {
					tree := openTree(t, dir, old)
					all := walked(t, tree, paths.Path{})
					listed := pages(t, tree, paths.Path{}, ListOptions{Limit: 5, Depth: 16})
					if len(listed) == 0 || len(all) <= len(listed) {
						t.Errorf("%s: %d walked, %d listed", tt.Name, len(all), len(listed))
					}
					must(t, tree.Close())
				}
			}
		})
	}
}
