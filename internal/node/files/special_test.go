package files

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// readAll does all that a reader can do with a tree, and returns what a walk found.
func readAll(t *testing.T, tree *Tree) map[string]Entry {
	t.Helper()
	found := map[string]Entry{}
	page, err := tree.List(t.Context(), paths.Path{}, ListOptions{Limit: 1000, Depth: 16}, nil)
	must(t, err)
	for _, e := range page.Entries {
		found[e.Path.String()] = e
		_, err := tree.Stat(e.Path)
		must(t, err)
		if _, err := contents(tree, e.Path); err == nil != (e.Type == Regular) {
			t.Errorf("open %q, a %s: %v", e.Name, e.Type, err)
		}
	}
	must(t, tree.Walk(t.Context(), paths.Path{}, nil, func(e Entry, open func() (*File, error)) error {
		if listed := found[e.Path.String()]; !e.Path.IsTop() && listed != e {
			t.Errorf("listed as %+v, walked as %+v", listed, e)
		}
		f, err := open()
		if err == nil {
			f.Close()
		}
		if err == nil != (e.Type == Regular) {
			t.Errorf("open %q, a %s, in a walk: %v", e.Name, e.Type, err)
		}
		return nil
	}))
	return found
}

// watch returns a function that returns what was opened since: the names in a directory, and an empty
// name for the watched file or directory itself.
func watch(t *testing.T, watched string) func() []string {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	_, err = unix.InotifyAddWatch(fd, watched, unix.IN_OPEN)
	must(t, err)
	return func() (opened []string) {
		var buf [64 << 10]byte
		n, err := unix.Read(fd, buf[:])
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		must(t, err)
		for at := 0; at < n; {
			length := int(binary.NativeEndian.Uint32(buf[at+12:]))
			name := strings.TrimRight(string(buf[at+unix.SizeofInotifyEvent:][:length]), "\x00")
			opened = append(opened, name)
			at += unix.SizeofInotifyEvent + length
		}
		return opened
	}
}

// TestSpecialFiles: a FIFO or a socket is an entry, and the kernel sees no one open it.
func TestSpecialFiles(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		must(t, unix.Mkfifo(dir+"/fifo", 0o666))
		must(t, unix.Mknod(dir+"/socket", unix.S_IFSOCK|0o666, 0))
		must(t, os.WriteFile(dir+"/file", nil, 0o600))
		testNeverOpened(t, dir, tree, map[string]Type{"fifo": FIFO, "socket": Socket, "file": Regular})
	})
}

func TestDevices(t *testing.T) {
	roottest.Need(t)
	eachKernel(t, func(t *testing.T, dir string, _ *Tree) {
		roottest.Tmpfs(t, dir, 0)
		// /dev/null and /dev/loop0.
		err := errors.Join(
			unix.Mknod(dir+"/char", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))),
			unix.Mknod(dir+"/block", unix.S_IFBLK|0o666, int(unix.Mkdev(7, 0))),
		)
		if errors.Is(err, unix.EPERM) {
			roottest.Lacks(t, "root", err)
		}
		must(t, err)
		must(t, os.WriteFile(dir+"/file", nil, 0o600))
		testNeverOpened(t, dir, openTree(t, dir, strings.Contains(t.Name(), "old")),
			map[string]Type{"char": Char, "block": Block, "file": Regular})
	})
}

func testNeverOpened(t *testing.T, dir string, tree *Tree, want map[string]Type) {
	t.Helper()
	opened := watch(t, dir)
	found := readAll(t, tree)
	if len(found) != len(want) {
		t.Errorf("found %v", found)
	}
	for name, kind := range want {
		if found[name].Type != kind {
			t.Errorf("%s is %q", name, found[name].Type)
		}
		if _, err := contents(tree, path(t, name)); kind != Regular && !errors.Is(err, ErrNotRegular) {
			t.Errorf("open %s: %v", name, err)
		}
	}
	// The directory itself has no name.
	names := slices.DeleteFunc(opened(), func(name string) bool { return name == "" })
	slices.Sort(names)
	if got := slices.Compact(names); !slices.Equal(got, []string{"file"}) {
		t.Errorf("opened were %q, want the file alone", got)
	}
}

// TestMounts: what is mounted in a volume is an entry without properties, and not entered.
func TestMounts(t *testing.T) {
	roottest.Need(t)
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		outside := filepath.Join(filepath.Dir(dir), "outside")
		must(t, os.MkdirAll(dir+"/mnt", 0o700))
		must(t, os.WriteFile(dir+"/file", []byte("inside"), 0o600))
		roottest.Bind(t, outside, dir+"/mnt")
		roottest.Bind(t, outside+"/secret", dir+"/file")
		found := readAll(t, tree)
		for _, name := range []string{"mnt", "file"} {
			if want := (Entry{Name: name, Path: path(t, name), Type: Mount}); found[name] != want {
				t.Errorf("%s: %+v", name, found[name])
			}
		}
		if len(found) != 2 {
			t.Errorf("found %v", found)
		}
		for _, way := range []string{"mnt", "mnt/secret", "file"} {
			if _, err := tree.Open(path(t, way)); !errors.Is(err, ErrCrossesMount) {
				t.Errorf("open %s: %v", way, err)
			}
		}
		if _, err := tree.List(t.Context(), path(t, "mnt"), ListOptions{}, nil); !errors.Is(err, ErrCrossesMount) {
			t.Errorf("list: %v", err)
		}
	})
}
