package scratch

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestErasedInodesShow: all that was erased counts as free.
func TestErasedInodesShow(t *testing.T) {
	for fstype, size := range map[string]int{"ext4": 64, "xfs": 300} {
		t.Run(fstype, func(t *testing.T) {
			const files = 2000
			d := openAt(t, filepath.Join(roottest.FileSystem(t, fstype, size), "work"))
			dir := create(t, d, here)
			for i := range files {
				must(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600))
			}
			before, err := d.Space()
			must(t, err)
			name, _ := discard(t, d, here)
			erase(t, d, name)
			after, err := d.SpaceAfterErase(before)
			must(t, err)
			if after.Free.Inodes < before.Free.Inodes+files {
				t.Errorf("%d inodes free, %d before %d were given back", after.Free.Inodes, before.Free.Inodes, files)
			}
		})
	}
}

// TestShowsMore: either kind that has not come free is to be waited for.
func TestShowsMore(t *testing.T) {
	before := volume.Space{Total: volume.Size{Bytes: 1000, Inodes: 100}, Free: volume.Size{Bytes: 10, Inodes: 1}}
	for name, test := range map[string]struct {
		bytes, inodes, limit int64
		want                 bool
	}{
		"both":                        {bytes: 20, inodes: 2, limit: 100, want: true},
		"neither":                     {bytes: 10, inodes: 1, limit: 100},
		"bytes":                       {bytes: 20, inodes: 1, limit: 100},
		"inodes":                      {bytes: 10, inodes: 2, limit: 100},
		"bytes, inodes have no limit": {bytes: 20, want: true},
		"no bytes, nor a limit":       {bytes: 10},
	} {
		after := volume.Space{Total: volume.Size{Bytes: 1000, Inodes: test.limit}, Free: volume.Size{Bytes: test.bytes, Inodes: test.inodes}}
		if showsMore(before, after) != test.want {
			t.Errorf("%s: %t", name, !test.want)
		}
	}
}
