package content

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/mounttest"
)

// TestHeld: each regular file is open once, however deep it lies and whatever it is called, and links are not followed.
func TestHeld(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	level := strings.Repeat("l", 255) + "/"
	deep := strings.Repeat(level, unix.PathMax/len(level)+1)
	for _, err := range []error{
		root.MkdirAll(deep, 0o755), root.WriteFile(deep+"file", nil, 0o644), root.WriteFile("top", nil, 0o644), root.Symlink("top", "link"),
		root.Mkdir("\xff", 0o755), root.WriteFile("\xff/\xfe", nil, 0o644),
		unix.Mkfifo(dir+"/fifo", 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var held Held
	for _, d := range []string{dir, dir + "/missing"} {
		if err := held.Open(d); err != nil {
			t.Fatal(err)
		}
	}
	if len(held.files) != 3 {
		t.Errorf("%d files are open", len(held.files))
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestHeldLeavesMountsOut: what is mounted in a volume can be unmounted while its files are held.
func TestHeldLeavesMountsOut(t *testing.T) {
	mounttest.Need(t)
	dir := t.TempDir()
	point := filepath.Join(dir, "mount")
	for _, err := range []error{
		os.Mkdir(point, 0o755), unix.Mount("tmpfs", point, "tmpfs", 0, ""), os.WriteFile(filepath.Join(point, "file"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var h Held
	err := h.Open(dir)
	if busy := unix.Unmount(point, 0); err != nil || busy != nil || len(h.files) != 1 {
		t.Errorf("%d files are held, %v; unmount: %v", len(h.files), err, busy)
		_ = unix.Unmount(point, unix.MNT_DETACH)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}
