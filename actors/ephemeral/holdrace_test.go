package ephemeral

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/messages"
)

// due makes the test node's volume go, and returns once that is under way or would be.
var due = map[string]func(h *testNode){
	"expiry":   func(*testNode) { time.Sleep(testLifespan + time.Second) },
	"eviction": func(h *testNode) { h.disk.set(h.disk.total/20, nil); time.Sleep(testLifespan) },
	"purge": func(h *testNode) {
		go func() { _ = h.node.Purge(h.t.Context(), testID, "root", "") }() // the pin is what is looked at
		synctest.Wait()
	},
}

// TestPinBeforeItGoes: a pin that came first, though it is not answered yet, keeps the volume.
func TestPinBeforeItGoes(t *testing.T) {
	for name, goes := range due {
		if name == "purge" {
			continue // comes after the pin, and counts
		}
		t.Run(name, func(t *testing.T) {
			withHolds(t, func(t *testing.T, h *testNode) {
				h.retain()
				record, pinned := h.holdCommit(1), make(chan error, 1)
				go func() { _, err := h.pin(48); pinned <- err }()
				synctest.Wait()
				goes(h)
				synctest.Wait()
				record()
				if err := <-pinned; err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				h.wantPhase(testID, volume.Retained)
				h.wantMarker("pinned")
				h.wantValues("pinned", metricstest.Values{"katbox_pinned_volumes": 1})
			})
		})
	}
}

// TestPinAfterItGoes: a deletion that came first is not taken back, and the answer says so.
func TestPinAfterItGoes(t *testing.T) {
	for name, goes := range due {
		t.Run(name, func(t *testing.T) {
			withHolds(t, func(t *testing.T, h *testNode) {
				h.retain()
				h.table.takes(testLifespan) // before it is recorded
				goes(h)
				synctest.Wait()
				for _, ask := range []func() (volume.Description, error){
					func() (volume.Description, error) { return h.pin(48) }, h.unpin, h.release,
				} {
					_, err := ask()
					wantError(t, err, volume.ErrGone)
				}
				h.table.takes(0)
				time.Sleep(2 * testLifespan)
				h.wantGone(testPod, testID)
				_, err := h.pin(48)
				wantError(t, err, volume.ErrNotFound)
				h.wantValues("gone", metricstest.Values{"katbox_pinned_volumes": 0})
			})
		})
	}
}

// TestPurgeDuringAPin waits for its record, and deletes the volume.
func TestPurgeDuringAPin(t *testing.T) {
	withHolds(t, func(t *testing.T, h *testNode) {
		h.retain()
		record, pinned, purged := h.holdCommit(1), make(chan error, 1), make(chan error, 1)
		go func() { _, err := h.pin(48); pinned <- err }()
		synctest.Wait()
		go func() { purged <- h.node.Purge(t.Context(), testID, "root", "a secret leaked") }()
		synctest.Wait()
		record()
		if err := <-pinned; err != nil && !errors.Is(err, volume.ErrNotFound) {
			t.Error(err)
		}
		if err := <-purged; err != nil {
			t.Error(err)
		}
		h.wantGone(testPod, testID)
		h.wantValues("purged", metricstest.Values{"katbox_pinned_volumes": 0, "katbox_pinned_bytes": 0})
	})
}

// TestPinMeetsAPublish: the pod has its volume in either order, and the volume is not pinned then.
func TestPinMeetsAPublish(t *testing.T) {
	for name, first := range map[string]string{"pin first": "pin", "publish first": "publish"} {
		t.Run(name, func(t *testing.T) {
			withHolds(t, func(t *testing.T, h *testNode) {
				h.retain()
				record, pinned, published := h.holdCommit(1), make(chan error, 1), make(chan error, 1)
				pin := func() { _, err := h.pin(48); pinned <- err }
				publish := func() { published <- h.node.Publish(t.Context(), h.publication()) }
				if first == "pin" {
					go pin()
					synctest.Wait()
					go publish()
				} else {
					go publish()
					synctest.Wait()
					go pin()
				}
				synctest.Wait()
				record()
				if err := <-published; err != nil {
					t.Errorf("publish: %v", err)
				}
				switch err := <-pinned; {
				case first == "pin" && err != nil:
					t.Errorf("pin: %v", err)
				case first == "publish" && !errors.Is(err, volume.ErrNotRetained):
					t.Errorf("pin: %v, want %v", err, volume.ErrNotRetained)
				}
				if r := h.wantPhase(testID, volume.Publishing); r.Hold != (volume.Hold{}) {
					t.Errorf("published with %+v", r.Hold)
				}
				h.wantMarker("published")
				h.wantValues("published", metricstest.Values{"katbox_pinned_volumes": 0})
			})
		})
	}
}

// TestPinSavesAVolumeThatCannotBeDeleted: what has failed so far changed nothing.
func TestPinSavesAVolumeThatCannotBeDeleted(t *testing.T) {
	withHolds(t, func(t *testing.T, h *testNode) {
		h.retain()
		if err := h.mounter.Mount(h.data(testPod, testID), "/mnt", "", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(testLifespan + deleteBackoff.Longest)
		h.mustPin(48)
		h.mounter.forgetMounts()
		time.Sleep(4 * deleteBackoff.Longest)
		h.wantMarker("pinned")
		h.wantPhase(testID, volume.Retained)
	})
}

// TestHoldOfSteppedClock: a pin ends when it should by the wall clock of its request, and a later step
// moves it no more than it moves the lifespan.
func TestHoldOfSteppedClock(t *testing.T) {
	unpublished := time.Now()
	r := volume.Record{ID: testID}.Retain(unpublished, testLifespan)
	for _, step := range []time.Duration{0, time.Hour, -time.Hour} {
		now := unpublished.Add(2 * time.Hour)
		*(*uint64)(unsafe.Pointer(&now)) += uint64(step/time.Second) << 30 // as in TestClockFollowsSteps
		until := now.Round(0).Add(48 * time.Hour)
		pin := &messages.HoldVolume{Kind: volume.Pinned, Until: until}
		if got := holdOf(r, pin, now, testRelease); got.For != 50*time.Hour {
			t.Errorf("after a step of %v the pin ends %v after the unpublish", step, got.For)
		}
		if got := holdOf(r, &messages.HoldVolume{Kind: volume.Released}, now, testRelease); got.For != 2*time.Hour+testRelease {
			t.Errorf("after a step of %v the release ends %v after the unpublish", step, got.For)
		}
	}
}

// TestHoldOf one that is there: the same again is the same, in spite of clocks that drift apart.
func TestHoldOf(t *testing.T) {
	unpublished := time.Now().Add(-time.Hour)
	const ann, bob = "ann", "bob"
	hold := func(kind volume.HoldKind, after time.Duration, by string) volume.Hold {
		return volume.Hold{Kind: kind, For: after, By: by}
	}
	for name, tt := range map[string]struct {
		is    volume.Hold
		ask   volume.HoldKind
		until time.Duration // after the unpublish
		want  volume.Hold
	}{
		"pin": {volume.Hold{}, volume.Pinned, 48 * time.Hour, hold(volume.Pinned, 48*time.Hour, bob)},
		"pin again, drifted": {hold(volume.Pinned, 48*time.Hour, bob), volume.Pinned, 48*time.Hour + time.Millisecond,
			hold(volume.Pinned, 48*time.Hour, bob)},
		"pin again, by another": {hold(volume.Pinned, 48*time.Hour, ann), volume.Pinned, 48 * time.Hour, hold(volume.Pinned, 48*time.Hour, bob)},
		"pin a released one":    {hold(volume.Released, 2*time.Hour, ann), volume.Pinned, 48 * time.Hour, hold(volume.Pinned, 48*time.Hour, bob)},
		"release":               {volume.Hold{}, volume.Released, 0, hold(volume.Released, time.Hour+testRelease, bob)},
		"release again":         {hold(volume.Released, time.Hour, ann), volume.Released, 0, hold(volume.Released, time.Hour, ann)},
		"unpin":                 {hold(volume.Pinned, 48*time.Hour, ann), volume.NoHold, 0, volume.Hold{}},
		"unpin a released one":  {hold(volume.Released, 2*time.Hour, ann), volume.NoHold, 0, volume.Hold{}},
		"unpin one without":     {volume.Hold{}, volume.NoHold, 0, volume.Hold{}},
		"unpin after the deadline": {hold(volume.Pinned, 48*time.Hour, ann), volume.NoHold, 0,
			hold(volume.Pinned, 20*time.Hour+testRelease, ann)},
	} {
		now := unpublished.Add(time.Hour)
		if name == "unpin after the deadline" {
			now = unpublished.Add(20 * time.Hour)
		}
		r := volume.Record{ID: testID, Hold: tt.is}.Retain(unpublished, testLifespan)
		m := &messages.HoldVolume{Kind: tt.ask, Until: unpublished.Add(tt.until).Round(0), By: bob}
		if got := holdOf(r, m, now, testRelease); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
