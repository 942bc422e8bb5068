package ephemeral

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// hoarder is a publish by which a pod attaches a numbered volume.
func (h *testNode) hoarder(i int) volume.Publication {
	p := h.attaching()
	p.ID, p.Pod = volume.ID(fmt.Sprintf("csi-look-%d", i)), volume.PodUID(fmt.Sprintf("look-%d", i))
	h.makePod(p.Pod)
	p.Target.Path, p.Attach = h.target(p.Pod, "mount"), volume.Place{Pod: numberedPod(i), ID: numbered(i)}
	return p
}

func (h *testNode) hoard(i int) error { return h.node.Publish(h.t.Context(), h.hoarder(i)) }

// endHoarder ends the pod that has the numbered volume attached.
func (h *testNode) endHoarder(i int) {
	h.t.Helper()
	p := h.hoarder(i)
	if err := h.node.Unpublish(h.t.Context(), p.ID, p.Target.Path); err != nil {
		h.t.Fatalf("end pod %d: %v", i, err)
	}
	synctest.Wait()
}

// ofDefault retains numbered volumes of namespace default before a start; each has ten hours to live.
func (h *testNode) ofDefault(volumes int) {
	h.t.Helper()
	for i := range volumes {
		h.retained(numberedPod(i), numbered(i), 2*time.Hour-time.Duration(i)*time.Minute, testLifespan)
		h.change(numbered(i), func(r *volume.Record) { r.Namespace = "default" })
	}
}

// TestAttachedShareThePinsBound: what pods attach is no more than what may be pinned, and both share that.
// After a restart too.
func TestAttachedShareThePinsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.ofDefault(6)
		h.allowPins()
		h.start()
		time.Sleep(time.Minute) // they are measured
		size := h.sizeOf(0)
		h.disk.mu.Lock()
		h.disk.total = uint64(2 * 3 * size)
		h.disk.free = h.disk.total
		h.disk.mu.Unlock()
		time.Sleep(time.Minute)

		if err := h.pinNumbered(0); err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{1, 2} {
			if err := h.hoard(i); err != nil {
				t.Fatalf("volume %d: %v", i, err)
			}
		}
		full := func(when string) {
			t.Helper()
			err := h.hoard(3)
			wantError(t, err, volume.ErrNotAttached)
			if !strings.Contains(err.Error(), string(numbered(3))) || !strings.Contains(err.Error(), "pinned or attached") {
				t.Errorf("%s: %v", when, err)
			}
			wantError(t, h.pinNumbered(4), volume.ErrCapped)
			h.wantValues(when, metricstest.Values{
				"katbox_pinned_volumes": 1, "katbox_pinned_bytes": float64(size),
				"katbox_attached_volumes": 2, "katbox_attached_bytes": float64(2 * size), "katbox_attached_late_volumes": 0,
			})
		}
		full("full")
		if err := h.hoard(1); err != nil {
			t.Errorf("the kubelet repeats itself: %v", err)
		}
		if err := h.pinNumbered(1); err != nil {
			t.Errorf("what is attached is pinned: %v", err)
		}
		if _, err := h.node.Unpin(t.Context(), numbered(1), "ann"); err != nil {
			t.Error(err)
		}
		h.restart()
		time.Sleep(time.Minute)
		full("after a restart")

		if err := h.hoard(0); err != nil {
			t.Errorf("what is pinned is attached: %v", err)
		}
		if _, err := h.node.Unpin(t.Context(), numbered(0), "ann"); err != nil {
			t.Error(err)
		}
		wantError(t, h.hoard(3), volume.ErrNotAttached)
		for _, i := range []int{0, 1, 2} {
			h.endHoarder(i)
		}
		h.wantValues("empty", metricstest.Values{"katbox_pinned_bytes": 0, "katbox_attached_volumes": 0, "katbox_attached_bytes": 0})
		if err := h.hoard(3); err != nil {
			t.Errorf("there is room again: %v", err)
		}
		h.stop()
	})
}

// TestAttachedCountAsRetained: a namespace that may retain so much has no more by attaching it: its other volumes go,
// and what it may not retain it cannot attach.
func TestAttachedCountAsRetained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		const volumes = 5
		h.ofDefault(volumes)
		var most atomic.Int64
		h.maxRetained = func(string) volume.Size { return volume.Size{Inodes: most.Load()} }
		h.start()
		time.Sleep(time.Minute) // they are measured
		d, err := h.node.Describe(t.Context(), numbered(0))
		if err != nil {
			t.Fatal(err)
		}
		inodes := d.Size.Inodes
		for i := range 2 {
			if err := h.hoard(i); err != nil {
				t.Fatal(err)
			}
		}
		most.Store(3 * inodes)
		time.Sleep(time.Minute)
		synctest.Wait() // the look of this very moment sees that bound, not the next one
		for i, want := range []bool{true, true, false, false, true} {
			if is := h.hasMarker(numberedPod(i), numbered(i)); is != want {
				t.Errorf("volume %d is there: %t, want %t", i, is, want)
			}
		}
		most.Store(2 * inodes)
		err = h.hoard(4)
		wantError(t, err, volume.ErrNotAttached)
		if !strings.Contains(err.Error(), "maxRetained") {
			t.Error(err)
		}
		most.Store(3 * inodes)
		if err := h.hoard(4); err != nil {
			t.Errorf("there is room again: %v", err)
		}
		h.stop()
	})
}

// TestAttachedBeforeMeasured: of what is not measured yet a namespace has one attached at a time: nobody knows
// how much that is.
func TestAttachedBeforeMeasured(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.leaveBehind() // it is measured at once, and what comes next is collected for a while
		for i, namespace := range []string{"default", "default", "other"} {
			h.makePod(numberedPod(i))
			p := h.publication()
			p.ID, p.Pod, p.Namespace, p.Target.Path = numbered(i), numberedPod(i), namespace, h.target(numberedPod(i), "mount")
			if err := h.node.Publish(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if err := h.node.Unpublish(t.Context(), p.ID, p.Target.Path); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if err := h.hoard(0); err != nil {
			t.Fatal(err)
		}
		wantError(t, h.hoard(1), volume.ErrBusy)
		other := h.hoarder(2)
		other.Namespace = "other"
		if err := h.node.Publish(t.Context(), other); err != nil {
			t.Errorf("another namespace: %v", err)
		}
		time.Sleep(time.Minute)
		if err := h.hoard(1); err != nil {
			t.Errorf("measured: %v", err)
		}
	})
}

// TestAttachedForTooLong: nothing takes a volume from a pod, however long that has it. It is counted, and afterwards
// the volume has no grace beyond what a pin could have given it.
func TestAttachedForTooLong(t *testing.T) {
	for name, restarted := range map[string]bool{"": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				h.maxPin = 24*time.Hour - testMaxPin
				h.start()
				h.leaveBehind()
				h.attach()
				late := func(when string, want float64) {
					t.Helper()
					if restarted {
						h.restart()
					}
					time.Sleep(time.Minute)
					h.wantMarker(when)
					h.wantValues(when, metricstest.Values{"katbox_attached_volumes": 1, "katbox_attached_late_volumes": want})
				}
				late("at first", 0)
				time.Sleep(23 * time.Hour)
				late("within the bound", 0)
				time.Sleep(time.Hour)
				late("beyond the bound", 1)
				time.Sleep(testLifespan)
				late("beyond the bound, and the lifespan", 1)
				h.detach()
				time.Sleep(time.Second)
				h.wantGone(testPod, testID)
				time.Sleep(time.Minute)
				h.wantValues("ended", metricstest.Values{"katbox_attached_volumes": 0, "katbox_attached_late_volumes": 0})
				h.stop()
			})
		})
	}
}

// TestAttachedAgainAndAgain: pods that attach a volume one after the other keep it no longer than one does.
func TestAttachedAgainAndAgain(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.stop()
		h.maxPin = 24*time.Hour - testMaxPin
		h.start()
		h.leaveBehind()
		began := time.Now()
		for time.Since(began) < testLifespan+22*time.Hour {
			h.attach()
			time.Sleep(time.Hour)
			h.detach()
			time.Sleep(time.Minute)
			h.wantMarker(fmt.Sprintf("after %s", time.Since(began)))
		}
		h.attach()
		time.Sleep(2 * time.Hour)
		h.wantMarker("attached")
		h.detach()
		time.Sleep(time.Second)
		h.wantGone(testPod, testID)
	})
}

// TestNoAttaching: where nothing can be pinned nothing can be attached.
func TestNoAttaching(t *testing.T) {
	for name, forbid := range map[string]func(*testNode){
		"--max-pin":    func(h *testNode) { h.maxPin = -testMaxPin },
		"--max-pinned": func(h *testNode) { h.maxPinned = amount(h.t, "0") },
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.stop()
				forbid(h)
				h.start()
				h.leaveBehind()
				err := h.node.Publish(t.Context(), h.attaching())
				wantError(t, err, volume.ErrNotAttached)
				if !strings.Contains(err.Error(), name) {
					t.Error(err)
				}
				h.wantMarker("not attached")
			})
		})
	}
}
