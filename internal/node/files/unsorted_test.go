package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// many makes that many names in a directory, all of the same file.
func many(t testing.TB, dir string, files int) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	first := dir + "/first"
	makeFile(t, first)
	for i := range files - 1 {
		must(t, unix.Link(first, fmt.Sprintf("%s/%05d-%s", dir, i*7919%files, strings.Repeat("x", 50))))
	}
}

// reads counts how often the names of a directory are read, or 64 names looked at.
func reads(count *int) Pace {
	return func(context.Context) error {
		*count++
		return nil
	}
}

// largest is how many names a file may have on ext4, nearly.
const largest = 60_000

// TestPagesCostByWhatIsAsked: a page of ten names of a directory with 60,000 reads the names of a part of it at first, and
// of the page alone from then on.
func TestPagesCostByWhatIsAsked(t *testing.T) {
	dir := t.TempDir()
	tree := openTree(t, dir, false)
	many(t, dir, largest)
	o := ListOptions{Limit: 10}
	for i, most := range []int{10, 2, 2, 2} {
		count := 0
		page, err := tree.List(t.Context(), paths.Path{}, o, reads(&count))
		must(t, err)
		if len(page.Entries) != o.Limit || page.Next == "" || !page.Own || count > most {
			t.Errorf("page %d: %d entries with %d reads, own order %t, then %q; want at most %d reads",
				i, len(page.Entries), count, page.Own, page.Next, most)
		}
		o.After = page.Next
	}
	all := pages(t, tree, paths.Path{}, ListOptions{Limit: 10_000})
	seen := map[string]bool{}
	for _, e := range all {
		seen[e.Name] = true
	}
	if len(all) != largest || len(seen) != len(all) {
		t.Errorf("%d names, %d of them different", len(all), len(seen))
	}
	// The first pages are those of the directory's own order, whatever their limits.
	if few := pages(t, tree, paths.Path{}, ListOptions{Limit: 9973}); names(few) != names(all) {
		t.Error("pages of another length have another order")
	}
}

// TestSortedAsLongAsCheap: the largest directory that is sorted, and the smallest that is not.
func TestSortedAsLongAsCheap(t *testing.T) {
	dir := t.TempDir()
	tree := openTree(t, dir, false)
	many(t, dir, maxSorted)
	first, err := tree.List(t.Context(), paths.Path{}, ListOptions{Limit: 100}, nil)
	must(t, err)
	inOrder := slices.IsSortedFunc(first.Entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	if first.Own || strings.Contains(first.Next, ";") || !inOrder {
		t.Errorf("%d names are not sorted, then %q", maxSorted, first.Next)
	}
	makeFile(t, dir+"/one more")
	page, err := tree.List(t.Context(), paths.Path{}, ListOptions{Limit: 100}, nil)
	must(t, err)
	if !page.Own || !strings.Contains(page.Next, ";") {
		t.Errorf("%d names are sorted, then %q", maxSorted+1, page.Next)
	}
	// Who asks on with a name would have it read as a whole for each page.
	if _, err := tree.List(t.Context(), paths.Path{}, ListOptions{Limit: 100, After: first.Next}, nil); !errors.Is(err, ErrBadContinue) {
		t.Errorf("behind a name: %v", err)
	}
}

// TestLargeDirectoriesInATree: the pages of a tree have all that is below it once, where some of its directories are
// sorted and others are not, below each other.
func TestLargeDirectoriesInATree(t *testing.T) {
	dir := t.TempDir()
	tree := openTree(t, dir, false)
	many(t, dir+"/b", maxSorted+1)
	for i := range 3 {
		must(t, os.MkdirAll(fmt.Sprintf("%s/b/00000-d%d/e", dir, i), 0o700))
		for j := range 5 {
			makeFile(t, fmt.Sprintf("%s/b/00000-d%d/e/%d", dir, i, j))
		}
	}
	for _, name := range []string{"a", "c;z", "b/d;1"} {
		makeFile(t, filepath.Join(dir, name))
	}
	want := names(pages(t, tree, paths.Path{}, ListOptions{Limit: 1 << 20, Depth: 4}))
	if n := len(strings.Fields(want)); n != maxSorted+1+3*7+4 {
		t.Fatalf("%d names in one page after the other", n)
	}
	for _, limit := range []int{997, 4001} {
		if got := names(pages(t, tree, paths.Path{}, ListOptions{Limit: limit, Depth: 4})); got != want {
			t.Errorf("pages of %d entries have others, or in another order", limit)
		}
	}
	// Page by page, one entry at a time, across the small directories in the large one.
	all := strings.Fields(want)
	at := slices.Index(all, "b/00000-d1") - 2
	for o, got := (ListOptions{Depth: 4}), 0; got < at+20; {
		o.Limit = max(1, at-got)
		page, err := tree.List(t.Context(), paths.Path{}, o, nil)
		must(t, err)
		if listed := strings.Fields(names(page.Entries)); !slices.Equal(listed, all[got:got+len(listed)]) {
			t.Fatalf("behind %d entries are %.300q", got, listed)
		}
		got, o.After = got+len(page.Entries), page.Next
	}
}

// TestHostilePositions: whatever stands where a list continues, it comes to its end, inside of the directory.
func TestHostilePositions(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		must(t, os.MkdirAll(dir+"/d/e", 0o700))
		for _, name := range []string{"a", "d/f", "d/e/g"} {
			must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
		for after, bad := range map[string]bool{
			"a;0": false, "a;1y2p0ij32e8e7": false, "a;zz": false, "none;1": false, "d;0/e;0/g;0": false, "d;7/none": false,
			"a;": true, "a;-1": true, "a;1;2": true, "a; 1": true, ";1": true, "a;1y2p0ij32e8e8": true, "..;1": true, "d/;1": true,
			"a;99999999999999999999": true, "/a": true, "a/": true, strings.Repeat("x;1/", 9000) + "x": true,
		} {
			o := ListOptions{After: after, Limit: 10, Depth: 3}
			for range 100 {
				page, err := tree.List(t.Context(), paths.Path{}, o, nil)
				if err != nil && !errors.Is(err, ErrBadContinue) || bad && err == nil {
					t.Errorf("after %.30q: %v", after, err)
				}
				for _, e := range page.Entries {
					if strings.Trim(names([]Entry{e}), "adefg/") != "" {
						t.Errorf("after %.30q: there is %q", after, e.Path)
					}
				}
				if o.After = page.Next; o.After == "" {
					break
				}
			}
			if o.After != "" {
				t.Errorf("after %.30q: the list does not end", after)
			}
		}
	})
}

// TestPagesOfEachFileSystem: the order of a large directory stays the same from page to page on each file system that a
// working directory may be on, for readers that open it anew each time.
func TestPagesOfEachFileSystem(t *testing.T) {
	for _, fstype := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fstype, func(t *testing.T) {
			dir := roottest.FileSystem(t, fstype, 384)
			tree := openTree(t, dir, false)
			many(t, dir+"/large", maxSorted+maxSorted/2)
			seen := map[string]bool{}
			all := pages(t, tree, path(t, "large"), ListOptions{Limit: 997})
			for _, e := range all {
				seen[e.Name] = true
			}
			if len(all) != maxSorted+maxSorted/2 || len(seen) != len(all) {
				t.Errorf("%d names, %d of them different", len(all), len(seen))
			}
		})
	}
}
