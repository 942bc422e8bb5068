package pools

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// forgetting are the calls that answer that something unknown is gone.
func forgetting(h *testPools) map[string]error {
	ctx := context.Background()
	return map[string]error{
		"delete":          h.controller.DeleteVolume(ctx, "pvc-0"),
		"delete snapshot": h.controller.DeleteSnapshot(ctx, "snapshot-0"),
		"detach":          h.controller.Detach(ctx, "pvc-0", "node1"),
		"detach all":      h.controller.Detach(ctx, "pvc-0", ""),
	}
}

func (h *testPools) wantAll(got map[string]error, want error) {
	h.Helper()
	for call, err := range got {
		if !errors.Is(err, want) {
			h.Errorf("%s: %v, want %v", call, err, want)
		}
	}
}

// TestUnknownIsNotGoneBeforeTheImport: the resources were lost, and Kubernetes deletes a claim meanwhile.
func TestUnknownIsNotGoneBeforeTheImport(t *testing.T) {
	var hold chan struct{}
	inPools(t, func(h *testPools) {
		hold = make(chan struct{})
		a := h.addPool("a", "fast")
		h.addOurs(a, "pvc-0")
		a.holdsList = hold
		h.addPool("b", "fast")
	}, func(h *testPools) {
		h.wantState("a", v1alpha1.PoolImporting, "", "")
		h.wantState("b", v1alpha1.PoolReady, "", "")
		h.wantAll(forgetting(h), volume.ErrUnavailable)
		close(hold)
		h.pass(0)
		h.wantAll(forgetting(h), nil)
		if n := len(h.arrays["https://a"].volumes); n > 0 {
			h.Errorf("%d volumes are left on the array", n)
		}
		h.wantAll(forgetting(h), nil)
	})
}

// TestPoolThatWasImportedHoldsNothingUp while its array is not reached, in another run either.
func TestPoolThatWasImportedHoldsNothingUp(t *testing.T) {
	inPools(t, func(h *testPools) { h.addPool("a", "fast") }, func(h *testPools) {
		h.arrays["https://a"].change(func(a *testArray) { a.fails = array.ErrTimeout })
		h.pass(2 * testInterval)
		h.wantState("a", v1alpha1.PoolUnreachable, "", "")
		h.wantAll(forgetting(h), nil)
		h.stop()
		h.start()
		h.wantAll(forgetting(h), nil)
	})
}

// TestPoolThatIsNeverReachedHoldsNothingUpForEver: a person may have mistyped its address.
func TestPoolThatIsNeverReachedHoldsNothingUpForEver(t *testing.T) {
	for name, wrong := range map[string]func(*testArray){
		"unreachable":  func(a *testArray) { a.fails = array.ErrTimeout },
		"incompatible": func(a *testArray) { a.health.Version = "19.08" },
	} {
		t.Run(name, func(t *testing.T) {
			inPools(t, func(h *testPools) { wrong(h.addPool("a", "fast")) }, func(h *testPools) {
				h.pass(30 * time.Minute)
				h.wantAll(forgetting(h), volume.ErrUnavailable)
				h.pass(31 * time.Minute)
				h.wantAll(forgetting(h), nil)
			})
		})
	}
}
