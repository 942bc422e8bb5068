package pools

import (
	"errors"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestRequestsDoNotDrainAPool: on an array whose deletions free nothing each request for a new volume would take some more.
func TestRequestsDoNotDrainAPool(t *testing.T) {
	var a *testArray
	inPools(t, func(h *testPools) {
		h.addClass("fast", oneClass(24*time.Hour))
		a = h.sized("a", 100)
	}, func(h *testPools) {
		h.retainOneByOne(12, 4)
		a.change(func(a *testArray) { a.shared = true })
		var err error
		for range 20 {
			_, err = h.controller.CreateVolume(h.Context(), newVolume("new", 60, false))
			h.pass(15 * time.Second)
		}
		if !errors.Is(err, volume.ErrNoSpace) {
			h.Errorf("a volume for which there is no room: %v", err)
		}
		a.memArray.mu.Lock()
		defer a.memArray.mu.Unlock()
		if left := len(a.volumes); left < 8 {
			h.Errorf("%d retained volumes are left of 12", left)
		}
		h.wantEvents("EvictionsStopped: deleting retained volumes makes no room", 1)
	})
}
