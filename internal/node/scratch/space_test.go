package scratch

import (
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestSpaceOfTheDisk: where statfs(2) shows other numbers in the working directory than beside it, as with a project quota on
// it, both are told; where they are the same, one of them.
func TestSpaceOfTheDisk(t *testing.T) {
	small, large := t.TempDir(), t.TempDir()
	roottest.Need(t)
	roottest.Mount(t, "katbox-test", small, "tmpfs", 0, "size=1m")
	roottest.Mount(t, "katbox-test", large, "tmpfs", 0, "size=8m")
	d := openAt(t, filepath.Join(small, "work"))
	d.SetBeside(small)
	is, err := d.Space()
	must(t, err)
	if is.Total.Bytes != 1<<20 || is.DiskTotal != (volume.Size{}) || is.DiskFree != (volume.Size{}) {
		t.Errorf("without a quota: %+v", is)
	}
	d.SetBeside(large)
	is, err = d.Space()
	must(t, err)
	if is.Total.Bytes != 1<<20 || is.DiskTotal.Bytes != 8<<20 || is.DiskFree.Bytes <= 1<<20 || is.DiskFree.Bytes > 8<<20 {
		t.Errorf("with a quota: %+v", is)
	}
	d.SetBeside(filepath.Join(large, "missing"))
	if is, err := d.Space(); err != nil || is.Total.Bytes != 1<<20 || is.DiskTotal != (volume.Size{}) {
		t.Errorf("before the kubelet makes its directory: %+v, %v", is, err)
	}
}
