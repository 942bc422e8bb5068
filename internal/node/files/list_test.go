package files

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/roottest/hostile"
)

// pages lists a directory page by page.
func pages(t *testing.T, tree *Tree, p paths.Path, o ListOptions) []Entry {
	t.Helper()
	var all []Entry
	for {
		page, err := tree.List(t.Context(), p, o, nil)
		must(t, err)
		if len(page.Entries) > o.Limit || page.Next != "" && len(page.Entries) == 0 {
			t.Fatalf("a page of %d entries, then %q", len(page.Entries), page.Next)
		}
		all = append(all, page.Entries...)
		if page.Next == "" {
			return all
		}
		o.After = page.Next
	}
}

func TestListInPages(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		// "a-" is before "a/x" by bytes, and behind it element by element.
		for _, d := range []string{"a/x/deep/er", "a-", "b/y", "empty"} {
			must(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
		}
		for _, f := range []string{"a/x/1", "a/x/2", "a/0", "a-/f", "b/y/z", "c", "\xff", "\x01", "a/x/deep/er/file"} {
			must(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
		}
		tests := []struct {
			depth int
			path  string
			want  string
		}{
			{1, "", "\x01 a a- b c empty \xff"},
			{2, "", "\x01 a a/0 a/x a- a-/f b b/y c empty \xff"},
			{3, "", "\x01 a a/0 a/x a/x/1 a/x/2 a/x/deep a- a-/f b b/y b/y/z c empty \xff"},
			{16, "", "\x01 a a/0 a/x a/x/1 a/x/2 a/x/deep a/x/deep/er a/x/deep/er/file a- a-/f b b/y b/y/z c empty \xff"},
			{1, "a", "a/0 a/x"},
			{2, "a", "a/0 a/x a/x/1 a/x/2 a/x/deep"},
			{1, "empty", ""},
		}
		for _, tt := range tests {
			for limit := 1; limit < 20; limit++ {
				o := ListOptions{Limit: limit, Depth: tt.depth}
				if got := names(pages(t, tree, path(t, tt.path), o)); got != tt.want {
					t.Errorf("%q, %+v:\n%q, want\n%q", tt.path, o, got, tt.want)
				}
			}
			page, err := tree.List(t.Context(), path(t, tt.path), ListOptions{Limit: 100, Depth: tt.depth}, nil)
			must(t, err)
			want := tt.depth < 16 && slices.ContainsFunc(page.Entries, func(e Entry) bool {
				return e.Type == Directory && len(e.Path.Elements()) == len(path(t, tt.path).Elements())+tt.depth
			})
			if page.Truncated != want {
				t.Errorf("%q, depth %d: truncated is %t", tt.path, tt.depth, page.Truncated)
			}
		}
	})
}

// TestListContinues: a page begins behind where the last one ended, even if that name is gone.
func TestListContinues(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		must(t, os.MkdirAll(dir+"/b/2", 0o700))
		for _, f := range []string{"a", "b/1", "b/2/x", "b/3", "c"} {
			must(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
		}
		for after, want := range map[string]string{
			"":      "a b b/1 b/2 b/2/x b/3 c",
			"a":     "b b/1 b/2 b/2/x b/3 c",
			"aa":    "b b/1 b/2 b/2/x b/3 c",
			"b":     "b/1 b/2 b/2/x b/3 c",
			"b/1":   "b/2 b/2/x b/3 c",
			"b/11":  "b/2 b/2/x b/3 c",
			"b/2/y": "b/3 c",
			"b/9":   "c",
			"ba/x":  "c",
			"c/x/y": "",
			"zz":    "",
		} {
			page, err := tree.List(t.Context(), paths.Path{}, ListOptions{After: after, Limit: 10, Depth: 3}, nil)
			if got := names(page.Entries); err != nil || got != want || page.Next != "" {
				t.Errorf("after %q: %q, %q, %v; want %q", after, got, page.Next, err, want)
			}
		}
		for _, after := range []string{"..", "a/../b", "/", "a//b", "%zz", "a/b/c/d", strings.Repeat("x", 1<<20)} {
			_, err := tree.List(t.Context(), paths.Path{}, ListOptions{After: after, Limit: 10, Depth: 3}, nil)
			if !errors.Is(err, ErrBadContinue) {
				t.Errorf("after %.20q: %v", after, err)
			}
		}
	})
}

// TestListEndsEarly: a page holds a bounded number of bytes, however long names and targets are.
func TestListEndsEarly(t *testing.T) {
	dir := t.TempDir()
	tree := openTree(t, dir, false)
	const links = 1200
	for i := range links {
		must(t, os.Symlink(strings.Repeat("t", 4000), fmt.Sprintf("%s/%0250d", dir, i)))
	}
	page, err := tree.List(t.Context(), paths.Path{}, ListOptions{Limit: 10_000}, nil)
	if n := len(page.Entries); err != nil || page.Next == "" || n > maxPage/4000 || n < maxPage/5000 {
		t.Errorf("%d entries, then %q, %v", n, page.Next, err)
	}
	if all := pages(t, tree, paths.Path{}, ListOptions{Limit: 10_000}); len(all) != links {
		t.Errorf("%d in all pages", len(all))
	}
}

// TestListMemory: a page takes as much memory as a page, whatever the size of the directory.
func TestListMemory(t *testing.T) {
	dir := t.TempDir()
	tree := openTree(t, dir, false)
	const files, limit = 10_000, 100
	for _, i := range rand.Perm(files) {
		makeFile(t, fmt.Sprintf("%s/%0200d", dir, i))
	}
	var live uint64
	calls := 0
	base := alive()
	page, err := tree.List(t.Context(), paths.Path{}, ListOptions{Limit: limit}, func(context.Context) error {
		calls++
		live = max(live, alive())
		return nil
	})
	must(t, err)
	if len(page.Entries) != limit || page.Next == "" || calls < 9 {
		t.Errorf("%d entries, then %q, %d pauses", len(page.Entries), page.Next, calls)
	}
	// All names together take 2 MiB.
	if live > base+1<<20 {
		t.Errorf("%d bytes more in use", live-base)
	}
}

// makeFile makes an empty file with one system call.
func makeFile(t testing.TB, path string) {
	t.Helper()
	must(t, unix.Mknod(path, unix.S_IFREG|0o600, 0))
}

// alive is how many bytes are in use.
func alive() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestListMillion lists a directory of 1,000,000 names: no page costs more than what is in it.
func TestListMillion(t *testing.T) {
	roottest.Need(t)
	dir := t.TempDir()
	roottest.Mount(t, "katbox-test", dir, "tmpfs", 0, "size=2g")
	tree := openTree(t, dir, false)
	const files, limit = 1_000_000, 10_000
	for i := range files {
		makeFile(t, fmt.Sprintf("%s/%07d", dir, i))
	}
	base, live, calls := alive(), uint64(0), 0
	pace := func(context.Context) error {
		if calls++; calls%20 == 0 {
			live = max(live, alive())
		}
		return nil
	}
	seen, o := map[string]bool{}, ListOptions{Limit: limit}
	for range 3 {
		page, err := tree.List(t.Context(), paths.Path{}, o, pace)
		must(t, err)
		for _, e := range page.Entries {
			seen[e.Name] = true
		}
		o.After = page.Next
	}
	if len(seen) != 3*limit || live > base+64<<20 || calls > 3*(limit/paceEvery+20) {
		t.Errorf("%d entries with %d pauses, %d bytes more in use", len(seen), calls, live-base)
	}
}

func BenchmarkList(b *testing.B) {
	for _, files := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("%d names", files), func(b *testing.B) {
			dir := b.TempDir()
			tree := openTree(b, dir, false)
			for i := range files {
				makeFile(b, fmt.Sprintf("%s/%07d", dir, i))
			}
			b.ReportAllocs()
			for b.Loop() {
				_, err := tree.List(b.Context(), paths.Path{}, ListOptions{Limit: 1000}, nil)
				must(b, err)
			}
		})
	}
}

// TestListPaces: a list stops when its pace does.
func TestListPaces(t *testing.T) {
	dir := t.TempDir()
	tree := openTree(t, dir, false)
	for i := range 300 {
		must(t, os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o600))
	}
	enough := errors.New("enough")
	for allowed := range 5 {
		calls := 0
		_, err := tree.List(t.Context(), paths.Path{}, ListOptions{Limit: 1000}, func(context.Context) error {
			if calls++; calls > allowed {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || calls != allowed+1 {
			t.Errorf("%d of %d calls: %v", calls, allowed, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tree.List(ctx, paths.Path{}, ListOptions{Limit: 1000}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
}

// TestHostileNames: what a list shows leads to the file that it means.
func TestHostileNames(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		for i, name := range hostile.Names {
			must(t, os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, i), 0o600))
		}
		all := pages(t, tree, paths.Path{}, ListOptions{Limit: 7})
		for i, name := range hostile.Names {
			at := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
			if at < 0 {
				t.Errorf("%q is missing", name)
				continue
			}
			p, err := paths.ParseRef(all[at].Path.Ref())
			must(t, err)
			if got, err := contents(tree, p); err != nil || got != fmt.Sprint(i) {
				t.Errorf("%q: %q, %v; want %d", name, got, err, i)
			}
		}
	})
}
