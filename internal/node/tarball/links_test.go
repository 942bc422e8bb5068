package tarball

import (
	"fmt"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/node/files"
)

// What is remembered of hard links is bounded, and is forgotten once all names were met.
func TestLinksAreBounded(t *testing.T) {
	var l links
	name := strings.Repeat("x", 4000)
	for i := range uint64(100_000) {
		l.find(files.Entry{Inode: i, Links: 3}, name)
	}
	if n := len(l.known); n == 0 || n*4000 > maxLinks {
		t.Errorf("%d names are remembered", n)
	}
	known := len(l.known)
	for i := range uint64(known) {
		for range 2 {
			if first, ok := l.find(files.Entry{Inode: i, Links: 3}, "other"); !ok || first != name {
				t.Fatalf("file %d has the name %.10q, %v", i, first, ok)
			}
		}
	}
	if len(l.known) != 0 || l.bytes != 0 {
		t.Errorf("%d names, %d bytes are still remembered", len(l.known), l.bytes)
	}
	if _, ok := l.find(files.Entry{Inode: 1, Links: 1}, "single"); ok || len(l.known) > 0 {
		t.Error("a file with one name is remembered")
	}
	first, ok := l.find(files.Entry{Inode: 7, Links: 2}, "a")
	if other, same := l.find(files.Entry{Inode: 7, Links: 2, Size: 1}, "b"); ok || same {
		t.Error(fmt.Sprint("files of different size are one: ", first, other))
	}
}
