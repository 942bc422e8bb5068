//go:build unix

package verbs

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOwnIsTheFileOfTheName: a copy that ends may rename the file between the open and the lock of another
// one, which then has a finished file.
func TestOwnIsTheFileOfTheName(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.partial")
	f, err := openOwn(name, os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !hasName(f, name) {
		t.Error("a new file does not have its name")
	}
	if err := os.Rename(name, name+".done"); err != nil {
		t.Fatal(err)
	}
	if hasName(f, name) {
		t.Error("a renamed file has its old name")
	}
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if hasName(f, name) {
		t.Error("a renamed file has the name of another")
	}
}

// TestOwnNeverGivesAFinishedFile: many open and finish the same file at once.
func TestOwnNeverGivesAFinishedFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x.partial")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 500 {
				f, err := openOwn(name, os.O_CREATE, 0o600)
				if errors.Is(err, errBusy) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				var is unix.Stat_t
				if err := unix.Fstat(int(f.Fd()), &is); err != nil || is.Size > 0 {
					t.Errorf("%v, or it was finished before: %d bytes", err, is.Size)
				}
				_, err = f.WriteString("finished")
				if err := errors.Join(err, os.Rename(name, name+".done"), f.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
