package ephemeral

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/messages"
)

// pinNumbered pins a numbered volume for a day.
func (h *testNode) pinNumbered(i int) error {
	_, err := h.node.Pin(h.t.Context(), numbered(i), time.Now().Add(24*time.Hour), "ann", "a bug")
	return err
}

// sizeOf is what a volume of the test node takes.
func (h *testNode) sizeOf(i int) int64 {
	h.t.Helper()
	d, err := h.node.Describe(h.t.Context(), numbered(i))
	if err != nil || d.Size == (volume.Size{}) {
		h.t.Fatalf("volume %d: %+v, %v", i, d, err)
	}
	return d.Size.Bytes
}

// TestPinsAreCapped: as many volumes are pinned as fit, and what is pinned stays so when less may be.
// Those that are not measured yet count once they are.
func TestPinsAreCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		const volumes = 5
		for i := range volumes {
			h.retained(numberedPod(i), numbered(i), time.Duration(volumes-i)*time.Minute, testLifespan)
		}
		h.allowPins()
		h.start()
		time.Sleep(time.Minute) // they are measured
		size := h.sizeOf(0)
		h.stop()
		limit := func(pins int64) {
			h.disk.total = uint64(2 * pins * size) // half of which may be pinned
			h.disk.free = h.disk.total
		}

		limit(3)
		h.start()
		time.Sleep(time.Minute)
		for i := range 3 {
			if err := h.pinNumbered(i); err != nil {
				t.Fatalf("volume %d: %v", i, err)
			}
		}
		for range 2 {
			err := h.pinNumbered(3)
			wantError(t, err, volume.ErrCapped)
			if !strings.Contains(err.Error(), "(50% of the file system)") || !strings.Contains(err.Error(), string(numbered(3))) {
				t.Errorf("%v", err)
			}
		}
		h.wantValues("full", metricstest.Values{"katbox_pinned_volumes": 3, "katbox_pinned_bytes": float64(3 * size)})
		if err := h.pinNumbered(2); err != nil {
			t.Errorf("pinned already: %v", err)
		}
		if _, err := h.node.Unpin(t.Context(), numbered(0), "ann"); err != nil {
			t.Fatal(err)
		}
		if err := h.pinNumbered(3); err != nil {
			t.Errorf("there is room again: %v", err)
		}
		h.stop()

		limit(1)
		h.start()
		time.Sleep(time.Minute)
		h.wantValues("a lower cap", metricstest.Values{"katbox_pinned_volumes": 3, "katbox_pinned_bytes": float64(3 * size)})
		wantError(t, h.pinNumbered(0), volume.ErrCapped)
		if err := h.pinNumbered(1); err != nil {
			t.Errorf("pinned already: %v", err)
		}
		for i := range 3 {
			if err := h.node.Purge(t.Context(), numbered(1+i), "root", ""); err != nil {
				t.Error(err)
			}
		}
		h.wantValues("purged", metricstest.Values{"katbox_pinned_volumes": 0, "katbox_pinned_bytes": 0})
		if err := h.pinNumbered(0); err != nil {
			t.Errorf("there is room again: %v", err)
		}
		h.stop()
	})
}

// TestPinsTogether take no more room than there is, though none is recorded yet.
func TestPinsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		const volumes = 20
		for i := range volumes {
			h.retained(numberedPod(i), numbered(i), time.Minute, testLifespan)
		}
		h.allowPins()
		h.start()
		time.Sleep(time.Minute)
		size := h.sizeOf(0)
		h.disk.mu.Lock()
		h.disk.total = uint64(2 * 4 * size)
		h.disk.free = h.disk.total
		h.disk.mu.Unlock()
		time.Sleep(time.Minute)
		release := h.holdCommit(1)
		answers := make(chan error, volumes)
		for i := range volumes {
			go func() { answers <- h.pinNumbered(i) }()
		}
		synctest.Wait()
		release()
		pinned := 0
		for range volumes {
			if err := <-answers; err == nil {
				pinned++
			} else {
				wantError(t, err, volume.ErrCapped)
			}
		}
		if pinned != 4 {
			t.Errorf("%d volumes are pinned, and there is room for 4", pinned)
		}
		h.wantValues("full", metricstest.Values{"katbox_pinned_volumes": 4, "katbox_pinned_bytes": float64(4 * size)})
		h.stop()
	})
}

// TestPinIsOver before the lifespan: pressure counts again, and the cap has room.
func TestPinIsOver(t *testing.T) {
	for name, restart := range map[string]bool{"while it runs": false, "while it is down": true} {
		t.Run(name, func(t *testing.T) {
			withHolds(t, func(t *testing.T, h *testNode) {
				h.retain()
				h.mustPin(2)
				h.wantValues("pinned", metricstest.Values{"katbox_pinned_volumes": 1})
				if restart {
					h.stop()
				}
				time.Sleep(2 * time.Hour)
				if restart {
					h.start()
				}
				h.wantValues("over", metricstest.Values{"katbox_pinned_volumes": 0})
				d, err := h.node.Describe(t.Context(), testID)
				if err != nil || d.Record.Hold != (volume.Hold{}) {
					t.Errorf("%+v, %v", d, err)
				}
				h.disk.set(h.disk.total/20, nil)
				time.Sleep(testLifespan / 2)
				h.wantGone(testPod, testID)
			})
		})
	}
}

// TestNoPins: a pin that the flags do not allow is refused, and the error says so.
func TestNoPins(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.stop()
		h.maxPinned = lifespan.Amount{}
		h.start()
		h.retain()
		_, err := h.pin(1)
		wantError(t, err, volume.ErrCapped)
		if !strings.Contains(err.Error(), "no volume can be pinned on this node") {
			t.Error(err)
		}
		h.stop()
		h.allowPins()
		h.maxPin = -testMaxPin
		h.start()
		_, err = h.pin(0)
		wantError(t, err, volume.ErrCapped)
	})
}

// TestPinsAreNotTooMany, however small they are, nor admitted before the disk was measured.
func TestPinsAreNotTooMany(t *testing.T) {
	m := metrics.New("test", "")
	p := newPins(amount(t, "99%"), m)
	wantError(t, p.admit("a", volume.Size{}), volume.ErrUnavailable)
	p.total = 1 << 50
	for i := range mostPins {
		if err := p.admit(numbered(i), volume.Size{Bytes: 1}); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, p.admit("a", volume.Size{}), volume.ErrCapped)
	if err := p.admit(numbered(7), volume.Size{Bytes: 1}); err != nil {
		t.Error(err)
	}
	for i := range mostPins {
		p.measured(&messages.SizesMeasured{Sizes: []messages.VolumeSize{{ID: numbered(i), Size: volume.Size{Bytes: 2}}}})
		p.drop(numbered(i))
		p.drop(numbered(i))
	}
	metricstest.Of(t, m).Want(t, "empty", metricstest.Values{"katbox_pinned_volumes": 0, "katbox_pinned_bytes": 0})
}
