package ephemeral

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
)

// crashLoop is a node on which ten pods of one Job have failed one after the other, the second of which a person has pinned.
// Beside them are what others left, all of it older than the loop: a success of that Job, a failure of another owner, and one
// of a pod without an owner. A pod of the Job runs. Of each owner the first pod and the last five stay; loopGone is what goes
// for that, in order.
func crashLoop(t *testing.T) (h *testNode, may *atomic.Pointer[volume.PerOwner]) {
	t.Helper()
	h, may = newTestNode(t), &atomic.Pointer[volume.PerOwner]{}
	may.Store(&volume.PerOwner{First: 1, Last: 5})
	h.perOwner = func(string) volume.PerOwner { return *may.Load() }
	left := func(i int, ago time.Duration, owner string, is volume.Outcome) {
		h.retained(numberedPod(i), numbered(i), ago, testLifespan)
		h.change(numbered(i), func(r *volume.Record) {
			r.Namespace, r.Outcome, r.Published = "ci", is, r.Unpublished.Add(-time.Minute)
			if owner != "" {
				r.Owner = volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ns-1", Kind: "Job", Name: owner, UID: "u"}
			}
		})
	}
	for i := range 10 {
		left(i, time.Duration(10-i)*time.Minute, nightly.Name, volume.Failed)
	}
	h.change(numbered(1), func(r *volume.Record) { r.Hold = volume.Hold{Kind: volume.Pinned, For: 24 * time.Hour} })
	left(10, 4*time.Hour, nightly.Name, volume.Succeeded)
	left(11, 5*time.Hour, "report", volume.Failed)
	left(12, 6*time.Hour, "", volume.Failed)
	return h, may
}

var loopGone = []volume.ID{numbered(2), numbered(3), numbered(4)}

// run starts a pod of the Job.
func (h *testNode) run() {
	h.t.Helper()
	h.publish()
	h.own(nightly)
	h.writeMarker(testPod, testID)
}

// wantLoop checks that only what is repeated is gone, and why; the first deletion may have been interrupted.
func (h *testNode) wantLoop(interrupted bool) {
	h.t.Helper()
	var gone []volume.ID
	for _, stone := range h.records.tombstones() {
		gone = append(gone, stone.Record.ID)
		if stone.Reason != volume.ForOwner && (!interrupted || stone.Reason != volume.Interrupted) {
			h.t.Errorf("%s went with the reason %s", stone.Record.ID, stone.Reason)
		}
		if stone.Broken() {
			h.t.Errorf("that %s went breaks a promise", stone.Record.ID)
		}
	}
	if slices.Sort(gone); !slices.Equal(gone, loopGone) {
		h.t.Errorf("gone are %v, want %v", gone, loopGone)
	}
	for i := range 13 {
		if id := numbered(i); slices.Contains(loopGone, id) {
			h.wantGone(numberedPod(i), id)
		} else if !h.hasMarker(numberedPod(i), id) {
			h.t.Errorf("%s has lost its files", id)
		}
	}
	h.wantMarker("while its pod runs")
}

// TestCrashLoopPushesNothingOut: neither the first failure, nor a success, nor what others left, nor what is pinned or in use.
func TestCrashLoopPushesNothingOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := crashLoop(t)
		h.start()
		h.run()
		time.Sleep(2 * testInterval)
		h.wantLoop(false)
		h.restart()
		time.Sleep(2 * testInterval)
		h.wantLoop(false)
		h.stop()
	})
}

// TestCrashLoopGoesBeforeOthersUnderPressure: as long as of an owner there are enough, no other makes the room, though it is older.
func TestCrashLoopGoesBeforeOthersUnderPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := crashLoop(t)
		h.disk.set(0, nil)
		h.watchDeletions(func(gone int) {
			if h.disk.set(4*uint64(gone), nil); gone == len(loopGone) {
				h.disk.set(1000, nil)
			}
		})
		h.start()
		h.run()
		time.Sleep(5 * time.Minute)
		h.wantLoop(false)
		h.records.fail(nil)
		h.stop()
	})
}

// TestCrashLoopAfterACrash: what a crash or the disk came between is decided in the same way.
func TestCrashLoopAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := crashLoop(t)
		h.records.fail(func(changes []volume.Change) error {
			if slices.ContainsFunc(changes, func(c volume.Change) bool { return c.Record == nil }) {
				return unix.EIO // the deletion is recorded, and its end is not
			}
			return nil
		})
		h.start()
		time.Sleep(2 * time.Second)
		h.stop()
		h.records.fail(nil)
		h.start()
		h.run()
		time.Sleep(time.Hour)
		h.wantLoop(true)
		h.stop()
	})
}

// TestPerOwnerChangesWhileTheNodeRuns: a lower limit takes effect with the next measurements, a higher one brings nothing back.
func TestPerOwnerChangesWhileTheNodeRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, may := crashLoop(t)
		limit := may.Swap(&volume.PerOwner{})
		h.start()
		h.run()
		time.Sleep(time.Hour)
		if gone := h.records.tombstones(); len(gone) > 0 {
			t.Errorf("without a limit %d are gone", len(gone))
		}
		may.Store(limit)
		time.Sleep(2 * testInterval)
		h.wantLoop(false)
		may.Store(&volume.PerOwner{First: 2, Last: 7})
		time.Sleep(2 * testInterval)
		h.wantLoop(false)
		h.stop()
	})
}
