package tarball

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/node/files"
)

// TestFewFilesAreOpenAhead: however slow the client is, the walk is only a few files ahead, and once
// the archive has ended early none is open.
func TestFewFilesAreOpenAhead(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for i := range 1000 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), "content")
	}
	open := func() (n int) {
		handles, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		for _, h := range handles {
			if to, err := os.Readlink("/proc/self/fd/" + h.Name()); err == nil && strings.HasPrefix(to, dir+"/") {
				n++
			}
		}
		return n
	}
	gone := errors.New("the client has gone")
	// The directory itself is open once, and the walk has a handle of what it looks at.
	const most = 3*together + 2
	w := writerFunc(func([]byte) (int, error) {
		if n := open(); n == 0 || n > most {
			t.Errorf("%d files are open ahead, want some, and at most %d", n, most)
		}
		return 0, gone
	})
	_, err = Write(t.Context(), w, reading(t, dir), Options{})
	wantError(t, err, gone)
	if n := open(); n > 0 {
		t.Errorf("%d files are still open", n)
	}
}

// TestFewLongPathsAreAhead: they take memory, and a pod chooses how long they are.
func TestFewLongPathsAreAhead(t *testing.T) {
	long, err := paths.New(strings.Repeat("d/", paths.Max/2-1))
	must(t, err)
	to := make(chan []*item, together)
	w := &walk{archiver: &archiver{}, high: func() {}, to: to}
	for range together {
		must(t, w.add(t.Context(), &item{Entry: files.Entry{Path: long, Type: files.Directory}}))
	}
	const few = longTogether/paths.Max + 1
	if len(to) == 0 || len(<-to) > few {
		t.Errorf("more than %d entries with paths of %d bytes wait together", few, len(long.String()))
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
