package mount

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestPropagates(t *testing.T) {
	roottest.Need(t)
	outer := t.TempDir()
	roottest.Tmpfs(t, outer, 0)
	dir := filepath.Join(outer, "pods")
	mkdir(t, dir)
	// A container's mounts are private by default, slaves with HostToContainer, and shared with
	// Bidirectional; a slave can be shared as well.
	for _, tt := range []struct {
		how  uintptr
		want bool
	}{{unix.MS_PRIVATE, false}, {unix.MS_SHARED, true}, {unix.MS_PRIVATE, false}, {unix.MS_UNBINDABLE, false}} {
		if err := unix.Mount("", outer, "", tt.how, ""); err != nil {
			t.Fatal(err)
		}
		if got, err := Propagates(dir); err != nil || got != tt.want {
			t.Errorf("%#x: %t, %v", tt.how, got, err)
		}
	}
	if err := unix.Mount("", outer, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	roottest.Bind(t, outer, copied)
	for _, tt := range []struct {
		how  uintptr
		want bool
	}{{unix.MS_SLAVE, false}, {unix.MS_SHARED, true}} {
		if err := unix.Mount("", copied, "", tt.how, ""); err != nil {
			t.Fatal(err)
		}
		if got, err := Propagates(copied + "/pods"); err != nil || got != tt.want {
			t.Errorf("a copy, %#x: %t, %v", tt.how, got, err)
		}
	}
}
