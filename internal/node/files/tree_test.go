package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/node/beneath"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eachKernel runs a test as on this kernel and as on an old one. Each has an empty data directory,
// and beside it the file outside/secret.
func eachKernel(t *testing.T, test func(t *testing.T, dir string, tree *Tree)) {
	for name, old := range map[string]bool{"current calls": false, "old calls": true} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			must(t, os.Mkdir(base+"/outside", 0o700))
			must(t, os.WriteFile(base+"/outside/secret", []byte("outside"), 0o600))
			must(t, os.Mkdir(base+"/data", 0o700))
			test(t, base+"/data", openTree(t, base+"/data", old))
		})
	}
}

func openTree(t testing.TB, dir string, old bool) *Tree {
	t.Helper()
	fd, err := unix.Open(dir, beneath.DirectoryFlags, 0)
	must(t, err)
	opener, err := beneath.New(fd)
	must(t, err)
	opener.NoOpenat2.Store(old)
	tree := New(fd, opener)
	t.Cleanup(func() { must(t, tree.Close()) })
	return tree
}

func path(t testing.TB, literal string) paths.Path {
	t.Helper()
	p, err := paths.New(literal)
	must(t, err)
	return p
}

// contents reads a whole file.
func contents(tree *Tree, p paths.Path) (string, error) {
	f, err := tree.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	return string(b), err
}

// TestLinks: a symbolic link is an entry with a target, and nothing follows it, wherever it is in a
// path.
func TestLinks(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		must(t, os.Mkdir(dir+"/real", 0o700))
		must(t, os.WriteFile(dir+"/real/file", []byte("inside"), 0o600))
		links := map[string]string{
			"absolute": filepath.Join(filepath.Dir(dir), "outside/secret"), "relative": "../outside/secret", "up": "..",
			"itself": "itself", "dangling": "nowhere", "directory": "real", "here": ".", "inside": "real/file",
			"magic": "/proc/self/cwd", "long": strings.Repeat("x", 4095),
		}
		for name, target := range links {
			must(t, os.Symlink(target, filepath.Join(dir, name)))
		}
		for name, target := range links {
			e, err := tree.Stat(path(t, name))
			if err != nil || e.Type != Symlink || e.Target != target {
				t.Errorf("%s: %+v, %v", name, e, err)
			}
			for _, way := range []string{name, name + "/", name + "/file", name + "/secret", name + "/a/b", "real/../" + name} {
				p, err := paths.New(way)
				if err != nil {
					continue
				}
				if _, err := tree.Open(p); !errors.Is(err, ErrSymlink) {
					t.Errorf("open %s: %v", way, err)
				}
				if _, err := tree.List(t.Context(), p, ListOptions{Limit: 10}, nil); !errors.Is(err, ErrSymlink) {
					t.Errorf("list %s: %v", way, err)
				}
			}
		}
		page, err := tree.List(t.Context(), paths.Path{}, ListOptions{Limit: 100, Depth: 16}, nil)
		must(t, err)
		walked := 0
		must(t, tree.Walk(t.Context(), paths.Path{}, nil, func(e Entry, open func() (*File, error)) error {
			walked++
			if _, err := open(); e.Type == Symlink && !errors.Is(err, ErrSymlink) {
				t.Errorf("open %s in a walk: %v", e.Name, err)
			}
			return nil
		}))
		// Besides the links, the directory, and the file in it; a walk has the top, too.
		if len(page.Entries) != len(links)+2 || walked != len(links)+3 {
			t.Errorf("%d listed, %d walked", len(page.Entries), walked)
		}
		if got, err := contents(tree, path(t, "real/file")); got != "inside" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestErrors(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		must(t, os.Mkdir(dir+"/dir", 0o700))
		must(t, os.WriteFile(dir+"/file", nil, 0o600))
		long := strings.Repeat("n", 256)
		tests := []struct {
			path             string
			stat, open, list error
		}{
			{path: "", open: ErrIsDirectory},
			{path: "dir", open: ErrIsDirectory},
			{path: "dir/", open: ErrIsDirectory},
			{path: "file", list: ErrNotDirectory},
			{path: "file/x", stat: ErrNotDirectory, open: ErrNotDirectory, list: ErrNotDirectory},
			{path: "etc/passwd", stat: fs.ErrNotExist, open: fs.ErrNotExist, list: fs.ErrNotExist},
			{path: "dir/new\nline", stat: fs.ErrNotExist, open: fs.ErrNotExist, list: fs.ErrNotExist},
			{path: long, stat: paths.ErrBad, open: paths.ErrBad, list: paths.ErrBad},
			{path: strings.TrimSuffix(strings.Repeat("d/", 2048), "/"), stat: fs.ErrNotExist, open: fs.ErrNotExist, list: fs.ErrNotExist},
		}
		for _, tt := range tests {
			p := path(t, tt.path)
			_, statErr := tree.Stat(p)
			_, openErr := tree.Open(p)
			_, listErr := tree.List(t.Context(), p, ListOptions{}, nil)
			walkErr := tree.Walk(t.Context(), p, nil, func(Entry, func() (*File, error)) error { return nil })
			for call, errs := range map[string][2]error{
				"stat": {statErr, tt.stat}, "open": {openErr, tt.open}, "list": {listErr, tt.list}, "walk": {walkErr, tt.stat},
			} {
				got, want := errs[0], errs[1]
				if !errors.Is(got, want) {
					t.Errorf("%s %.40q: %v, want %v", call, tt.path, got, want)
				}
				if got != nil && (strings.ContainsAny(got.Error(), "\n\x1b") || !strings.Contains(got.Error(), `"`)) {
					t.Errorf("%s %.40q: the error does not quote the path: %v", call, tt.path, got)
				}
			}
		}
	})
}

// TestClose: what is open stays readable, and what begins later is refused.
func TestClose(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		must(t, os.WriteFile(dir+"/file", []byte("data"), 0o600))
		f, err := tree.Open(path(t, "file"))
		must(t, err)
		defer f.Close()
		must(t, tree.Walk(t.Context(), paths.Path{}, nil, func(Entry, func() (*File, error)) error { return tree.Close() }))
		must(t, tree.Close())
		if _, err := f.ReadAt(make([]byte, 4), 0); err != nil {
			t.Errorf("read: %v", err)
		}
		_, statErr := tree.Stat(paths.Path{})
		_, openErr := tree.Open(path(t, "file"))
		_, listErr := tree.List(context.Background(), paths.Path{}, ListOptions{}, nil)
		for _, err := range []error{statErr, openErr, listErr} {
			if !errors.Is(err, fs.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
		must(t, f.Close())
		if _, err := f.ReadAt(make([]byte, 4), 0); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("read after Close: %v", err)
		}
	})
}

// TestNoHandleIsLeft: neither success nor any error keeps a handle.
func TestNoHandleIsLeft(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		must(t, os.MkdirAll(dir+"/a/b/c", 0o700))
		must(t, os.WriteFile(dir+"/a/file", []byte("data"), 0o600))
		must(t, os.Symlink("a", dir+"/link"))
		must(t, unix.Mkfifo(dir+"/fifo", 0o600))
		before := handles(t)
		stop := errors.New("stop")
		for _, literal := range []string{"", "a", "a/b/c", "a/file", "a/file/x", "link", "link/x", "fifo", "missing", "a/missing/x"} {
			p := path(t, literal)
			_, _ = tree.Stat(p)
			_, _ = contents(tree, p)
			_, _ = tree.List(t.Context(), p, ListOptions{Limit: 2, Depth: 3}, nil)
			for after := range 4 {
				_ = tree.Walk(t.Context(), p, nil, func(Entry, func() (*File, error)) error {
					if after--; after == 0 {
						return stop
					}
					return nil
				})
			}
		}
		if after := handles(t); after != before {
			t.Errorf("%d handles before, %d after", before, after)
		}
	})
}

func handles(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(open)
}

// names are the paths of entries, for comparisons.
func names(entries []Entry) string {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%s ", e.Path)
	}
	return strings.TrimSpace(b.String())
}
