package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestCheckPath: whatever puts another directory, or none, in the place of the working directory is
// noticed, and nothing else is.
func TestCheckPath(t *testing.T) {
	base := t.TempDir()
	root, link := filepath.Join(base, "above/work"), filepath.Join(base, "link")
	must(t, os.MkdirAll(root, 0o750))
	must(t, os.Symlink(root, link))
	for _, path := range []string{root, link} {
		d, err := Open(path)
		must(t, err)
		defer d.Close()
		must(t, d.CheckPath())
		covered := func(how string) {
			t.Helper()
			if err := d.CheckPath(); !errors.Is(err, ErrCovered) {
				t.Errorf("%s, %s: %v", path, how, err)
			}
		}
		aside := filepath.Join(base, "aside")
		must(t, os.Rename(filepath.Dir(root), aside))
		covered("moved with the directory above it")
		must(t, os.MkdirAll(root, 0o750))
		covered("another one in its place")
		must(t, os.RemoveAll(filepath.Dir(root)))
		must(t, os.WriteFile(filepath.Dir(root), nil, 0o600))
		covered("a file in the way")
		must(t, os.Remove(filepath.Dir(root)))
		must(t, os.Rename(aside, filepath.Dir(root)))
		must(t, d.CheckPath())
	}
	d, err := Open(root)
	must(t, err)
	defer d.Close()
	must(t, os.RemoveAll(root))
	if err := d.CheckPath(); !errors.Is(err, ErrCovered) {
		t.Errorf("removed: %v", err)
	}
}

// TestMountedOver: with something mounted over the working directory, or with its own mount gone,
// no question about mounts is answered.
func TestMountedOver(t *testing.T) {
	roottest.Need(t)
	root := t.TempDir()
	roottest.UnmountAtEnd(t, root)
	_, err := mount.EnsureOwn(root)
	must(t, err)
	d, err := Open(root)
	must(t, err)
	defer d.Close()
	path := create(t, d, here)
	must(t, os.WriteFile(filepath.Join(path, "marker"), nil, 0o600))
	if _, err := d.Bindings("/none"); err != nil {
		t.Fatal(err)
	}
	covered := func(how string) {
		t.Helper()
		if got, err := d.Bindings("/none"); !errors.Is(err, ErrCovered) {
			t.Errorf("%s: %v, %v", how, got, err)
		}
		if _, err := os.Lstat(filepath.Join(d.Source(here), "marker")); err != nil {
			t.Errorf("%s: the source is not the data directory: %v", how, err)
		}
	}
	must(t, unix.Mount("other", root, "tmpfs", 0, ""))
	must(t, os.MkdirAll(path, 0o750))
	covered("another file system")
	must(t, unix.Unmount(root, 0))
	must(t, unix.Mount(root, root, "", unix.MS_BIND, ""))
	covered("itself")
	must(t, unix.Unmount(root, 0))
	must(t, d.CheckPath())
	must(t, unix.Unmount(root, unix.MNT_DETACH))
	covered("its own mount gone")
}
