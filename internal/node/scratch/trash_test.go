package scratch

import (
	"context"
	"crypto/rand"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// TestTrashInPages: all that is there from the first page to the last is in one of them, though
// what was in the pages before is erased.
func TestTrashInPages(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, d *Dir) {
		const entries, atLeast = 5000, 1000
		for range entries {
			must(t, os.Mkdir(filepath.Join(d.root, trashName, rand.Text()), 0o700))
		}
		if size, err := d.TrashSize(); err != nil || size != entries {
			t.Errorf("%d entries of %d, %v", size, entries, err)
		}
		pages, seen := 0, 0
		for from := int64(0); from != 0 || pages == 0; pages++ {
			page, next, err := d.TrashPage(from, atLeast)
			must(t, err)
			if len(page) < atLeast && next != 0 || len(page) > 2*atLeast {
				t.Errorf("a page of %d names", len(page))
			}
			for _, name := range page {
				must(t, d.Erase(context.Background(), name, nil))
			}
			seen, from = seen+len(page), next
		}
		if seen != entries || pages < 3 {
			t.Errorf("%d of %d entries in %d pages", seen, entries, pages)
		}
		trashIsEmpty(t, d)
		if page, next, err := d.TrashPage(0, math.MaxInt); err != nil || len(page) != 0 || next != 0 {
			t.Errorf("an empty trash: %q, %d, %v", page, next, err)
		}
	})
}
