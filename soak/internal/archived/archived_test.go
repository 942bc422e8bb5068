package archived

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/mounttest"
)

// TestGroundOnly: the model may be as careless as it is only where nothing but
// the test can be hurt.
func TestGroundOnly(t *testing.T) {
	if _, err := Start(Config{Ground: t.TempDir()}); err == nil {
		t.Error("it works on a directory that is no file system of its own")
	}
	mounttest.Need(t)
	ground := t.TempDir()
	t.Cleanup(func() { mounttest.ClearAway(t, ground) })
	other := filepath.Join(ground, "dir/other")
	for _, dir := range []string{ground, other} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(ground, "dir/file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d := &Driver{cfg: Config{Ground: ground}}
	if err := d.removeAll(filepath.Join(ground, "dir")); err == nil {
		t.Error("it deletes into another file system")
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("it began before it had looked: %v", err)
	}
}
