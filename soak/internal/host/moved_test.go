package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestUnmountIDFindsWhatMoved(t *testing.T) {
	needMounts(t)
	dir := t.TempDir()
	for _, name := range []string{"source", "before/point"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	point := filepath.Join(dir, "before", "point")
	outside, err := MountID(point)
	if err != nil {
		t.Fatal(err)
	}
	if err := Bind(filepath.Join(dir, "source"), point); err != nil {
		t.Fatal(err)
	}
	id, err := MountID(point)
	if err != nil || id == outside {
		t.Fatalf("the mount has the number %d, %v; the directory below it has %d", id, err, outside)
	}
	if err := os.Rename(filepath.Join(dir, "before"), filepath.Join(dir, "after")); err != nil {
		t.Fatal(err)
	}
	if err := UnmountID(id); err != nil {
		t.Error(err)
	}
	if mounted, err := MountedAt(filepath.Join(dir, "after", "point")); mounted || err != nil {
		t.Errorf("mounted: %t, %v; want it gone", mounted, err)
	}
	if err := UnmountID(id); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second time: %v, want that there is none", err)
	}
}
