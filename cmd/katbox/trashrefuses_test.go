package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestVolumeThatCannotBeMoved: a volume is deleted even if the file system refuses to move
// it to the trash. On an overlay these are the volumes of the lower layer; with project
// quotas or very many names it may be any volume.
func TestVolumeThatCannotBeMoved(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "100ms")
	layers := t.TempDir()
	roottest.Tmpfs(t, layers, 0)
	lower := filepath.Join(layers, "lower")
	data := filepath.Join(lower, testPod, volumeID(1))
	for _, path := range []string{data, layers + "/upper", layers + "/work", d.workdir()} {
		if err := os.MkdirAll(path, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mount("katbox-test", d.workdir(), "overlay", 0,
		"userxattr,lowerdir="+lower+",upperdir="+layers+"/upper,workdir="+layers+"/work"); err != nil {
		t.Fatal(err)
	}
	d.start()
	// It is adopted and expires soon.
	d.eventually("the volume is deleted", d.gone(testPod, volumeID(1)))
	if log := d.log(); !strings.Contains(log, "erasing a volume where it is") {
		t.Errorf("it could be moved\n%s", log)
	}
}
