package scratch

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/katbox/katbox/internal/roottest"
)

// TestErasedInodesShow: after Sync all that was erased counts as free.
func TestErasedInodesShow(t *testing.T) {
	for fstype, size := range map[string]int{"ext4": 64, "xfs": 300} {
		t.Run(fstype, func(t *testing.T) {
			const files = 2000
			d := openAt(t, filepath.Join(roottest.FileSystem(t, fstype, size), "work"))
			dir := create(t, d, pod, vol)
			for i := range files {
				must(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600))
			}
			before, err := d.Space()
			must(t, err)
			name, _ := discard(t, d, pod, vol)
			erase(t, d, name)
			must(t, d.Sync())
			after, err := d.Space()
			must(t, err)
			if after.FreeInodes < before.FreeInodes+files {
				t.Errorf("%d inodes free, %d before %d were given back", after.FreeInodes, before.FreeInodes, files)
			}
		})
	}
}
