// Package verbstest is for the tests of command lines with verbs: what is copied, how a connection
// breaks meanwhile, and what came of it.
package verbstest

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Numbers returns a text with a number of lines, in which every place differs.
func Numbers(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// WantFile checks what is in a file.
func WantFile(t testing.TB, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s has %d bytes, %v, want %d", name, len(got), err, len(want))
	}
}

// WantNames checks what is below a directory: files, links and empty directories, in any order. An
// empty directory has a slash at its end.
func WantNames(t testing.TB, dir string, want ...string) {
	t.Helper()
	var got []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if d.IsDir() {
			entries, err := os.ReadDir(path)
			if err != nil || len(entries) > 0 {
				return err
			}
			name += "/"
		}
		got = append(got, name)
		return nil
	})
	slices.Sort(got)
	if want = slices.Sorted(slices.Values(want)); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s has %q, %v, want %q", dir, got, err, want)
	}
}

// Cut returns a writer for an answer whose connection breaks after a number of bytes of the body.
func Cut(w http.ResponseWriter, after int) http.ResponseWriter {
	return &cutting{ResponseWriter: w, left: after}
}

type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutting) Write(p []byte) (int, error) {
	if len(p) < c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	if _, err := c.ResponseWriter.Write(p[:c.left]); err == nil {
		_ = http.NewResponseController(c.ResponseWriter).Flush() // the client is gone
	}
	panic(http.ErrAbortHandler)
}
