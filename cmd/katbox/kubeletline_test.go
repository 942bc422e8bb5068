package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestOnDiskOf: the root of a container is an overlay, whose upper layer is on the disk of the images.
func TestOnDiskOf(t *testing.T) {
	images, other := roottest.FileSystem(t, "ext4", 32), roottest.FileSystem(t, "ext4", 32)
	for _, dir := range []string{"lower", "upper", "work", "root", "katbox"} {
		must(t, os.Mkdir(filepath.Join(images, dir), 0o700))
	}
	root := filepath.Join(images, "root")
	roottest.Mount(t, "katbox-test", root, "overlay", 0,
		"lowerdir="+images+"/lower,upperdir="+images+"/upper,workdir="+images+"/work")
	for _, tt := range []struct {
		root, dir string
		want      bool
	}{
		{root, filepath.Join(images, "katbox"), true}, {root, other, false}, {root, t.TempDir(), false},
		{images, filepath.Join(images, "katbox"), true}, {images, other, false},
	} {
		if got, err := onDiskOf(tt.root, tt.dir); err != nil || got != tt.want {
			t.Errorf("the disk of %s has %s: %v, %v, want %v", tt.root, tt.dir, got, err, tt.want)
		}
	}
	if _, err := onDiskOf(filepath.Join(root, "missing"), other); err == nil {
		t.Error("there is no such root, and no error")
	}
}
