package content

import (
	"os"
	"testing"
)

// TestOverfill takes what there is, and no more than it may.
func TestOverfill(t *testing.T) {
	for name, c := range map[string]struct {
		options        string
		most           Room
		bytes, atLeast int64
		inodes         int64
	}{
		"no limit":    {"size=8m", Room{1 << 20, 100}, 1 << 20, 1 << 20, 100},
		"bytes":       {"size=1m", Room{8 << 20, 100}, 1 << 20, 1 << 19, 100},
		"inodes":      {"size=8m,nr_inodes=50", Room{1 << 20, 100}, 1 << 20, 1 << 20, 48},
		"no file":     {"size=8m,nr_inodes=2", Room{1 << 20, 100}, 0, 0, 0},
		"a directory": {"size=8m,nr_inodes=3", Room{1 << 20, 100}, 1 << 20, 1 << 20, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tmpfs(t, c.options)
			if err := os.WriteFile(dir+"/its-own", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				taken, err := Overfill(dir, c.most)
				if err != nil || taken.Bytes > c.bytes || taken.Bytes < c.atLeast || taken.Inodes != c.inodes {
					t.Errorf("%+v, %v, want %d to %d bytes and %d inodes", taken, err, c.atLeast, c.bytes, c.inodes)
				}
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("left %v, %v", entries, err)
			}
		})
	}
}

func TestOverfillNeedsAVolume(t *testing.T) {
	if taken, err := Overfill(t.TempDir()+"/nothing", Room{1, 1}); err == nil || taken != (Room{}) {
		t.Errorf("%+v, %v", taken, err)
	}
}
