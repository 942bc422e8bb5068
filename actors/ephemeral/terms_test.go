package ephemeral

import (
	"os"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestTermsAreTheFirst: a volume keeps the terms of its first publish, whatever a repeated one asks
// for, across a restart, and also when the administrator refuses them by now.
func TestTermsAreTheFirst(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		first := volume.Terms{Lifespan: time.Hour, LifespanSucceeded: time.Minute, Limit: volume.Size{Bytes: 1 << 20}, Mode: 0o1770}
		p := h.publication()
		p.Terms = first
		publish := func() {
			t.Helper()
			if err := h.node.Publish(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		publish()
		if info, err := os.Stat(h.data(testPod, testID)); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o770 {
			t.Errorf("data directory: %v (%v), want the mode that was asked for", info.Mode(), err)
		}
		p.Terms = volume.Terms{Lifespan: 1000 * time.Hour, LifespanSucceeded: 1000 * time.Hour, Mode: 0o777}
		publish()
		h.restart()
		h.mounter.forgetMounts() // so that it is recorded once more
		p.Terms, p.Refused = volume.Terms{}, volume.Invalid(`volumeAttributes["sizeLimit"]`, "is more than allowed")
		publish()
		if record := h.wantPhase(testID, volume.Publishing); record.Terms != first {
			t.Errorf("terms %+v, want %+v", record.Terms, first)
		}
	})
}

// TestRefusedTermsTouchNothing: the first publish with them leaves neither directory nor record.
func TestRefusedTermsTouchNothing(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		p := h.publication()
		p.Refused = volume.Invalid(`volumeAttributes["lifespam"]`, "is not known")
		wantError(t, h.node.Publish(t.Context(), p), volume.ErrInvalid)
		h.wantGone(testPod, testID)
		if h.records.committed() != 0 || h.mounter.done != 0 {
			t.Errorf("%d commits and %d mounts", h.records.committed(), h.mounter.done)
		}
	})
}
