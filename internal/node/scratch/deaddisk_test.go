package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestDeadDisk: the mount table tells where volumes are mounted whose disk does not answer. A start says what is wrong.
func TestDeadDisk(t *testing.T) {
	disk := roottest.FileSystem(t, "xfs", 320)
	root := filepath.Join(disk, "work")
	d, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p := volume.Place{Pod: "pod", ID: "csi-1"}
	if _, err := d.Create(p); err != nil {
		t.Fatal(err)
	}
	pods := t.TempDir()
	target := filepath.Join(pods, "mount")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	roottest.Bind(t, d.Source(p), target)
	roottest.ShutDown(t, disk)

	if _, err := Open(root); !errors.Is(err, unix.EIO) || errors.Is(err, fs.ErrExist) {
		t.Errorf("open: %v", err)
	}
	if err := d.CheckPath(); !errors.Is(err, unix.EIO) || errors.Is(err, ErrCovered) {
		t.Errorf("check: %v", err)
	}
	bindings, err := d.Bindings(pods)
	if err != nil || len(bindings) != 1 || bindings[0].Source != p.String() || bindings[0].Target != target {
		t.Errorf("bindings: %+v, %v", bindings, err)
	}
	roottest.Tmpfs(t, disk, 0)
	if _, err := d.Bindings(pods); !errors.Is(err, ErrCovered) {
		t.Errorf("covered: %v", err)
	}
}
