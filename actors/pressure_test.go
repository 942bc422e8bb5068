package actors

import (
	"testing"

	"github.com/katbox/katbox/internal/scratch"
)

// TestMeasureAfterDeletion has what came free brought about when either kind
// seems not to have.
func TestMeasureAfterDeletion(t *testing.T) {
	before := scratch.Space{Bytes: 1000, FreeBytes: 10, Inodes: 100, FreeInodes: 1}
	tests := map[string]struct {
		bytes, inodes, limit uint64
		synced               bool
	}{
		"both":                        {bytes: 20, inodes: 2, limit: 100},
		"neither":                     {bytes: 10, inodes: 1, limit: 100, synced: true},
		"bytes":                       {bytes: 20, inodes: 1, limit: 100, synced: true},
		"inodes":                      {bytes: 10, inodes: 2, limit: 100, synced: true},
		"bytes, inodes have no limit": {bytes: 20},
		"no bytes, nor a limit":       {bytes: 10, synced: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synced := false
			space := func() (scratch.Space, error) {
				if synced {
					return scratch.Space{FreeBytes: 500}, nil
				}
				return scratch.Space{Bytes: 1000, FreeBytes: tt.bytes, Inodes: tt.limit, FreeInodes: tt.inodes}, nil
			}
			got, err := measureAfterDeletion(space, func() error { synced = true; return nil }, before)
			if err != nil || synced != tt.synced || got.FreeBytes == 500 != tt.synced {
				t.Errorf("synced: %t, measured %+v, %v, want synced: %t", synced, got, err, tt.synced)
			}
		})
	}
}
