package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestSwapped reads while a process keeps swapping a directory for a link to another one, and a file
// for a link and for a FIFO: no byte comes from outside, and the FIFO blocks nothing and is never
// opened.
func TestSwapped(t *testing.T) { testSwapped(t, 30_000) }

// TestSwappedMillion is TestSwapped for long.
func TestSwappedMillion(t *testing.T) {
	roottest.Need(t)
	testSwapped(t, 1_000_000)
}

func testSwapped(t *testing.T, swaps int) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		outside := filepath.Join(filepath.Dir(dir), "outside")
		must(t, os.MkdirAll(dir+"/directory/below", 0o700))
		for _, path := range []string{"/directory/secret", "/directory/below/secret", "/file"} {
			must(t, os.WriteFile(dir+path, []byte("inside"), 0o600))
		}
		// The others lie where readers do not look.
		aside := t.TempDir()
		must(t, os.Symlink(outside, aside+"/directory"))
		must(t, os.Symlink(outside+"/secret", aside+"/file"))
		must(t, unix.Mkfifo(aside+"/fifo", 0o600))
		opened := watch(t, aside+"/fifo")

		done := make(chan error, 1)
		go func() { done <- swap(dir, aside, swaps) }()
		read := 0
		for err := error(nil); ; {
			select {
			case err = <-done:
				must(t, err)
				t.Logf("%d reads", read)
				if len(opened()) > 0 {
					t.Error("the FIFO was opened")
				}
				return
			default:
				read++
				readSwapped(t, tree)
			}
		}
	})
}

// swap swaps names in dir for those in aside.
func swap(dir, aside string, swaps int) error {
	in, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(in)
	out, err := unix.Open(aside, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(out)
	for i := range swaps {
		from, to := "directory", "directory"
		switch i % 4 {
		case 1:
			from, to = "file", "file"
		case 3:
			from, to = "file", "fifo"
		}
		if err := unix.Renameat2(in, from, out, to, unix.RENAME_EXCHANGE); err != nil {
			return err
		}
	}
	return nil
}

func readSwapped(t *testing.T, tree *Tree) {
	t.Helper()
	for _, literal := range []string{"directory/secret", "directory/below/secret", "file"} {
		p, err := paths.New(literal)
		must(t, err)
		if got, err := contents(tree, p); err == nil && got != "inside" {
			t.Fatalf("read %q from %s", got, literal)
		}
	}
	p := path(t, "directory")
	// Outside there is nothing but the file secret, with a longer text.
	seen := func(e Entry) {
		if e.Name == "secret" && e.Type == Regular && e.Size != int64(len("inside")) {
			t.Fatalf("found %+v", e)
		}
	}
	page, err := tree.List(t.Context(), p, ListOptions{Limit: 10, Depth: 2}, nil)
	for _, e := range page.Entries {
		seen(e)
	}
	if err != nil && strings.Contains(err.Error(), "mount") {
		t.Fatalf("list: %v", err)
	}
	err = tree.Walk(t.Context(), paths.Path{}, nil, func(e Entry, _ func() (*File, error)) error {
		seen(e)
		return nil
	})
	if err != nil && strings.Contains(err.Error(), "mount") {
		t.Fatalf("walk: %v", err)
	}
}
