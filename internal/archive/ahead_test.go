package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
