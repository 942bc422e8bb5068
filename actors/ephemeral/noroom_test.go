package ephemeral

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// noRoomToPublish has each publish find that there is no room for its record.
func (h *testNode) noRoomToPublish() {
	h.records.fail(func(changes []volume.Change) error {
		if changes[0].Record != nil && changes[0].Record.Phase == volume.Publishing {
			return unix.ENOSPC
		}
		return nil
	})
}

// TestNoRoomElsewhereDeletesNothing: the kernel has one error for a full disk, for another disk
// that is full, and for too many mounts. Retained volumes make room on the first one only.
func TestNoRoomElsewhereDeletesNothing(t *testing.T) {
	const volumes = 5
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		for i := range volumes {
			h.retained("pod", numbered(i), time.Hour, testLifespan)
		}
		h.start()
		h.mounter.fail(always(unix.ENOSPC), nil)
		for range volumes {
			err := h.node.Publish(t.Context(), h.publication())
			wantError(t, err, volume.ErrFailed)
			if strings.Contains(err.Error(), "working directory") {
				t.Errorf("%q is not about the working directory", err)
			}
			time.Sleep(time.Minute)
		}
		for i := range volumes {
			if !h.hasMarker("pod", numbered(i)) {
				t.Errorf("volume %d is gone", i)
			}
		}
		h.stop()
	})
}

// TestTooManyMounts: a publish for which the node has too many mounts leaves nothing, and the kubelet tries again. Nothing is deleted
// for it. Once there are fewer it succeeds.
func TestTooManyMounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.retained("pod", numbered(0), time.Hour, testLifespan)
		h.start()
		h.mounter.fail(always(fmt.Errorf("%w: %w", unix.ENOSPC, mount.ErrTooMany)), nil)
		err := h.node.Publish(t.Context(), h.publication())
		wantError(t, err, volume.ErrExhausted)
		if errors.Is(err, volume.ErrFailed) || errors.Is(err, volume.ErrNoSpace) || !strings.Contains(err.Error(), "fs.mount-max") {
			t.Errorf("%v is another error besides, or does not say what to do", err)
		}
		time.Sleep(time.Minute)
		if !h.hasMarker("pod", numbered(0)) {
			t.Error("a retained volume is gone")
		}
		h.mounter.fail(nil, nil)
		h.publish()
		h.stop()
	})
}

// TestOutOfResources: without descriptors or memory a publish is refused so that the kubelet tries again, with what to
// do, and nothing is deleted for it: that would not help. Once there are some it succeeds.
func TestOutOfResources(t *testing.T) {
	const volumes = 3
	for _, number := range []unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM} {
		synctest.Test(t, func(t *testing.T) {
			h := newTestNode(t)
			for i := range volumes {
				h.retained("pod", numbered(i), time.Hour, testLifespan)
			}
			h.start()
			h.mounter.fail(always(number), nil)
			err := h.node.Publish(t.Context(), h.publication())
			wantError(t, err, volume.ErrExhausted)
			wantError(t, err, number)
			if errors.Is(err, volume.ErrFailed) || errors.Is(err, volume.ErrNoSpace) {
				t.Errorf("%v is another error besides", err)
			}
			h.mounter.fail(nil, nil)
			h.records.fail(func([]volume.Change) error { return number })
			wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrExhausted)
			h.records.fail(nil)
			time.Sleep(time.Minute)
			for i := range volumes {
				if !h.hasMarker("pod", numbered(i)) {
					t.Errorf("%v: volume %d is gone", number, i)
				}
			}
			h.publish()
			h.stop()
		})
	}
}

// TestDiskBelowAQuota: the working directory has a quota of which little is used, and the disk below is under the
// kubelet's line. All that is retained goes, as without the quota.
func TestDiskBelowAQuota(t *testing.T) {
	for name, tt := range map[string]struct {
		free int64
		goes bool
	}{"room on the disk": {40_000, false}, "below the kubelet's line": {12_000, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				h.line = lifespan.DefaultLine
				h.disk.below = volume.Space{Total: volume.Size{Bytes: 100_000}, Free: volume.Size{Bytes: tt.free}}
				h.retained("pod", testID, time.Hour, testLifespan)
				h.start()
				time.Sleep(time.Minute)
				if gone := !h.hasMarker("pod", testID); gone != tt.goes {
					t.Errorf("gone: %v, want %v", gone, tt.goes)
				}
				h.stop()
			})
		})
	}
}

// TestNoByteForPods: root has room on the disk, and pods have none. A new volume is refused, and what is
// there is published again.
func TestNoByteForPods(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.unpublish()
		h.disk.set(0, nil)
		h.publish()
		h.publish()
		other := h.publication()
		other.ID, other.Target.Path = "csi-other", h.target(testPod, "other")
		wantError(t, h.node.Publish(t.Context(), other), volume.ErrNoSpace)
		if _, known := h.records.get("csi-other"); known {
			t.Error("a refused volume has a record")
		}
		h.disk.set(1, nil)
		if err := h.node.Publish(t.Context(), other); err != nil {
			t.Errorf("with room again: %v", err)
		}
	})
}

// TestCallsThatFindNoRoomBreakNoGuarantee, except on a disk that is all but full.
func TestCallsThatFindNoRoomBreakNoGuarantee(t *testing.T) {
	const total, calls = 1_000_000, 4 // the headroom is 100,000
	all := []volume.ID{"csi-old", "csi-young", "csi-pinned"}
	for name, tt := range map[string]struct {
		free uint64
		gone int
	}{
		"no pressure":          {total, 1},
		"room above the brink": {25_001, 1},
		"below the brink":      {15_000, 3},
		"nothing left":         {0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				h.minLifespan = time.Hour
				h.disk.total, h.disk.free = total, tt.free
				for i, ago := range []time.Duration{2 * time.Hour, 10 * time.Minute, 11 * time.Hour} {
					h.retained("pod", all[i], ago, testLifespan)
				}
				h.change("csi-pinned", func(r *volume.Record) {
					r.Hold = volume.Hold{Kind: volume.Pinned, For: 20 * time.Hour, By: "anna", Why: "a test"}
				})
				h.noRoomToPublish()
				refuses := h.records.onCommit
				h.records.fail(func(changes []volume.Change) error {
					if r := changes[0].Record; r != nil && r.Phase == volume.Deleting {
						h.disk.set(h.disk.free+4000, nil) // or it would make no room
					}
					return refuses(changes)
				})
				h.start()
				for range calls {
					wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrNoSpace)
					time.Sleep(time.Minute)
				}
				for i, id := range all {
					if got, want := !h.hasMarker("pod", id), i < tt.gone; got != want {
						t.Errorf("%s is gone: %t, want %t", id, got, want)
					}
				}
				h.wantValues("at the end", metricstest.Values{
					`katbox_broken_guarantees_total{guarantee="pin"}`: float64(max(tt.gone-2, 0)),
				})
				h.records.fail(nil)
				h.stop()
			})
		})
	}
}

// TestVolumesThatCannotBeDeletedSleep: on a disk that fails they cost neither an actor nor a line
// of the log each, and go once the disk works again.
func TestVolumesThatCannotBeDeletedSleep(t *testing.T) {
	const volumes = 4 * maxDeletions
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		lines := &list[string]{}
		h.log = funcr.New(func(_, line string) { lines.add(line) }, funcr.Options{})
		var awake, most atomic.Int64
		h.more = append(h.more, func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
				switch envelope.Message.(type) {
				case *actor.Started:
					most.Store(max(awake.Add(1), most.Load()))
				case *actor.Stopped:
					awake.Add(-1)
				}
				next(c, envelope)
			}
		})
		for i := range volumes {
			h.retained("pod", numbered(i), time.Hour, testLifespan)
		}
		h.records.fail(func(changes []volume.Change) error { return unix.EIO })
		h.start()
		time.Sleep(testLifespan)
		synctest.Wait()
		if most.Load() > 2*maxDeletions || awake.Load() != 0 { // an actor ends a little after its deletion
			t.Errorf("%d volumes were awake at once, and %d still are", most.Load(), awake.Load())
		}
		h.wantMetrics("failing", counted{volume.Retained: volumes}, metricstest.Values{`katbox_stuck_volumes{phase="Deleting"}`: volumes})
		told := slices.DeleteFunc(slices.Clone(lines.get()), func(line string) bool { return !strings.Contains(line, "cannot be deleted") })
		if len(told) != 2 || !strings.Contains(told[1], `"volumes"=1023`) {
			t.Errorf("log %q, want a line for the first and one for the rest", told)
		}
		h.records.fail(nil)
		time.Sleep(deleteBackoff.Longest)
		for i := range volumes {
			h.wantGone("pod", numbered(i))
		}
		h.wantMetrics("works again", nil, metricstest.Values{
			`katbox_evictions_total{reason="expired"}`: volumes, `katbox_erased_volumes_total`: volumes,
			`katbox_deadline_lateness_seconds_count`: volumes,
		})
		h.stop()
	})
}

// TestVolumesThatCannotGoEarlyWait: each is tried again after a growing while, and not at each
// measurement.
func TestVolumesThatCannotGoEarlyWait(t *testing.T) {
	const volumes = 5
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		for i := range volumes {
			h.retained("pod", numbered(i), time.Hour, 10*testLifespan)
		}
		h.start()
		h.disk.set(0, nil)
		tries := map[volume.ID]int{}
		h.records.fail(func(changes []volume.Change) error {
			for _, change := range changes {
				tries[change.ID]++
			}
			return unix.EIO
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		for i := range volumes {
			// 10 s, 20 s, 40 s and so on up to 10 minutes.
			if n := tries[numbered(i)]; n < 6 || n > 15 {
				t.Errorf("volume %d was tried %d times within an hour", i, n)
			}
		}
		h.records.fail(nil)
		h.stop()
	})
}
