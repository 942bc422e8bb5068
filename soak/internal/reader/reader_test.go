package reader

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/soak/internal/history"
)

// TestPickedOnce: a volume that is over is there for whoever wants it, and then forgotten.
func TestPickedOnce(t *testing.T) {
	over := &subject{volume: &history.Volume{ID: "csi-1", Data: filepath.Join(t.TempDir(), "gone")}}
	r := &Reader{subjects: []*subject{over}}
	random := rand.New(rand.NewPCG(1, 2))
	if s := r.pick(random, func(*subject) bool { return false }); s != nil || len(r.subjects) != 1 {
		t.Errorf("picked %+v, which is not wanted, and %d are left", s, len(r.subjects))
	}
	if s := r.pick(random, anyone); s != over || len(r.subjects) != 0 {
		t.Errorf("picked %+v, and %d are left; want the one that is over, and none", s, len(r.subjects))
	}
}
