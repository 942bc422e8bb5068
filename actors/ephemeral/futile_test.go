package ephemeral

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/messages"
)

const heldSize = 300 << 10

// heldNode is a node on a disk of 1 GiB with some retained volumes and a pinned one, which promise 300 KiB
// each. brings says how much a deletion brings.
func heldNode(t *testing.T, volumes int, brings func() uint64, test func(t *testing.T, h *testNode, log *lines, gone func() int)) {
	synctest.Test(t, func(t *testing.T) {
		h, log := newTestNode(t), &lines{t: t}
		h.log = log.logger()
		h.disk.total, h.disk.free = 1<<30, 1<<30
		for i := range volumes + 1 {
			h.retained("pod", numbered(i), time.Duration(volumes-i)*time.Minute, 100*testLifespan)
			if err := os.WriteFile(filepath.Join(h.data("pod", numbered(i)), "log"), make([]byte, heldSize), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h.change(numbered(volumes), func(r *volume.Record) {
			r.Hold = volume.Hold{Kind: volume.Pinned, For: 99 * testLifespan, By: "anna", Why: "a test"}
		})
		h.start()
		gone := h.watchDeletions(func(int) {
			h.disk.mu.Lock()
			h.disk.free += brings()
			h.disk.mu.Unlock()
		})
		time.Sleep(10 * time.Second) // the sizes are measured
		test(t, h, log, func() int { return len(gone()) })
		h.records.fail(nil)
		h.stop()
	})
}

// TestDeletionsThatMakeNoRoomStop: a process outside has the files open. The others stay, and the pinned
// one before all; that is said, and one is tried again after a while. Once that makes room they go on.
func TestDeletionsThatMakeNoRoomStop(t *testing.T) {
	var held atomic.Bool
	held.Store(true)
	heldNode(t, 8, func() uint64 {
		if held.Load() {
			return 0
		}
		return 10 << 20 // with some of them the disk is not all but full any more
	}, func(t *testing.T, h *testNode, log *lines, gone func() int) {
		want := func(when string, deleted int, stopped float64) {
			t.Helper()
			if n := gone(); n != deleted {
				t.Errorf("%s: %d volumes are gone, want %d", when, n, deleted)
			}
			h.wantValues(when, metricstest.Values{`katbox_evictions_stopped`: stopped, `katbox_broken_guarantees_total{guarantee="pin"}`: 0})
			if !h.hasMarker("pod", numbered(8)) {
				t.Errorf("%s: the pinned volume is gone", when)
			}
		}
		h.disk.set(0, nil)
		time.Sleep(35 * time.Second)
		want("at first", 3, 1)
		if n := len(log.with("deleting retained volumes makes no room, keeping the others: a process outside has their files open, " +
			"or something shares their blocks; trying one again after a while")); n != 1 {
			t.Errorf("%d lines say so, want one", n)
		}
		time.Sleep(65 * time.Second)
		want("after a minute", 4, 1)
		time.Sleep(50 * time.Second)
		want("two minutes later they wait longer", 4, 1)
		held.Store(false)
		time.Sleep(70 * time.Second)
		want("let go", 8, 0)
	})
}

// TestCallsThatFindNoRoomTakeNothingThatFreesNone: each repeated publish would take one otherwise.
func TestCallsThatFindNoRoomTakeNothingThatFreesNone(t *testing.T) {
	heldNode(t, 8, func() uint64 { return 0 }, func(t *testing.T, h *testNode, _ *lines, gone func() int) {
		h.disk.set(0, nil)
		for range 40 {
			h.node.Root.Send(h.node.Single(diskName), &messages.NoSpace{})
			time.Sleep(time.Second)
		}
		if n := gone(); n != 3 {
			t.Errorf("%d volumes are gone, want 3", n)
		}
	})
}

// TestATenantThatTakesTheRoomStopsNothing: what comes free is taken at once. Deletions go on, because they
// make room.
func TestATenantThatTakesTheRoomStopsNothing(t *testing.T) {
	heldNode(t, 8, func() uint64 { return heldSize }, func(t *testing.T, h *testNode, _ *lines, gone func() int) {
		h.disk.set(0, nil)
		time.Sleep(25 * time.Millisecond) // never at the time of a look
		for range 1200 {
			time.Sleep(50 * time.Millisecond)
			h.disk.set(0, nil)
		}
		if n := gone(); n < 8 {
			t.Errorf("%d volumes are gone, want all that are not pinned", n)
		}
		h.wantValues("at the end", metricstest.Values{`katbox_evictions_stopped`: 0})
	})
}

// TestAPinStaysWhereOthersMakeNoRoom: with fewer volumes than it takes to be certain.
func TestAPinStaysWhereOthersMakeNoRoom(t *testing.T) {
	for _, volumes := range []int{1, 2} {
		t.Run(fmt.Sprint(volumes), func(t *testing.T) {
			heldNode(t, volumes, func() uint64 { return 0 }, func(t *testing.T, h *testNode, _ *lines, gone func() int) {
				h.disk.set(0, nil)
				time.Sleep(3 * time.Hour)
				if n := gone(); n != volumes || !h.hasMarker("pod", numbered(volumes)) {
					t.Errorf("%d are gone, want %d, without the pinned one", n, volumes)
				}
				h.wantValues("at the end", metricstest.Values{`katbox_evictions_stopped`: 1})
			})
		})
	}
}

// TestAPinThatStaysHoldsNoOtherUp: as long as too few volumes have gone to be certain that this makes no room, one that is retained
// later goes when room is needed, and does not wait for a minute.
func TestAPinThatStaysHoldsNoOtherUp(t *testing.T) {
	for _, volumes := range []int{1, 2} {
		t.Run(fmt.Sprint(volumes), func(t *testing.T) {
			var frees atomic.Bool
			heldNode(t, volumes, func() uint64 {
				if frees.Load() {
					return 1 << 29 // there is no pressure any more
				}
				return 0
			}, func(t *testing.T, h *testNode, _ *lines, gone func() int) {
				h.publish()
				h.writeMarker(testPod, testID)
				h.disk.set(0, nil)
				time.Sleep(35 * time.Second)
				if n := gone(); n != volumes {
					t.Errorf("%d volumes are gone, want %d", n, volumes)
				}
				h.wantValues("at first", metricstest.Values{`katbox_evictions_stopped`: 1})
				frees.Store(true)
				h.unpublish()
				time.Sleep(5 * time.Second)
				if n := gone(); n != volumes+1 || !h.hasMarker("pod", numbered(volumes)) {
					t.Errorf("%d volumes are gone, want %d, without the pinned one", n, volumes+1)
				}
				h.wantValues("at the end", metricstest.Values{`katbox_evictions_stopped`: 0})
			})
		})
	}
}
