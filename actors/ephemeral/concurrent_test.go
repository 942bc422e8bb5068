package ephemeral

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// TestSmallVolumesPassLargeOnes: erasures that take long are under way in all places, and what
// comes later is erased all the same, as it comes.
func TestSmallVolumesPassLargeOnes(t *testing.T) {
	const small = 600
	b := &fakeTrash{entries: map[string]int{}, slow: 5 * time.Millisecond}
	withDisk(t, 2, b, func(t *testing.T, w diskTest) {
		b.put(endless, series("huge", maxStarted)...)
		w.erase(series("huge", maxStarted)...)
		time.Sleep(time.Second)
		for i := range small {
			b.put(1, fmt.Sprint("small", i))
			w.erase(fmt.Sprint("small", i))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		// In the first minute no slice is over.
		if n := len(b.erased()); n < small-60 {
			t.Errorf("%d of %d small volumes are erased", n, small)
		}
	})
}

// TestTrashIsReadBesideLargeErasures: what an earlier process left does not wait until the large
// ones are erased.
func TestTrashIsReadBesideLargeErasures(t *testing.T) {
	const huge, old = 2 * maxStarted, 3 * maxWaiting
	b := &fakeTrash{entries: map[string]int{}, slow: 100 * time.Millisecond}
	b.put(1, series("old", old)...)
	withDisk(t, maxStarted, b, func(t *testing.T, w diskTest) {
		b.put(endless, series("huge", huge)...)
		w.erase(series("huge", huge)...)
		time.Sleep(time.Hour)
		synctest.Wait()
		if left := b.left() - huge; left > 0 {
			t.Errorf("%d of %d old entries are left", left, old)
		}
	})
}

// TestExpiriesStarveNoEvictions: room is made while volumes expire all the time, so that a deletion
// is always under way.
func TestExpiriesStarveNoEvictions(t *testing.T) {
	const expiring, old = 300, 100
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.table.takes(60 * time.Millisecond) // 20,000 mounts
		for i := range expiring {
			h.retained(numberedPod(i), numbered(i), 0, time.Minute+time.Duration(i)*time.Second)
		}
		for i := expiring; i < expiring+old; i++ {
			h.retained(numberedPod(i), numbered(i), time.Hour, 100*time.Hour)
		}
		h.start()
		time.Sleep(2 * time.Minute)
		h.disk.set(0, nil)
		time.Sleep(2 * time.Minute)
		for i := expiring; i < expiring+old; i++ {
			h.wantGone(numberedPod(i), numbered(i))
		}
		h.stop()
	})
}

// TestPublishAsADeletionEnds: the volume is a new one then, and nothing waits for the end of the
// deletion any more.
func TestPublishAsADeletionEnds(t *testing.T) {
	const old = 20
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		var armed atomic.Bool
		h.more = []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
				if isEnd(e.Message) && armed.CompareAndSwap(true, false) {
					p := h.publication()
					publish := &messages.PublishVolume{Routing: messages.Routing{ID: p.ID}, Publication: p}
					publish.Prepare()
					h.node.Root.Send(h.node.Supervisor(), publish)
				}
				next(c, e)
			}
		}}
		for i := range old {
			h.retained(numberedPod(i), numbered(i), time.Hour, 100*time.Hour)
		}
		h.start()
		h.publish()
		h.unpublish()
		time.Sleep(testLifespan - time.Second)
		armed.Store(true)
		time.Sleep(2 * time.Second)
		h.wantPhase(testID, volume.Publishing)
		h.disk.set(0, nil)
		time.Sleep(time.Minute)
		for i := range old {
			h.wantGone(numberedPod(i), numbered(i))
		}
		h.disk.set(1000, nil)
		h.mounter.forgetMounts()
		h.removePod(testPod)
		time.Sleep(2 * testGrace)
		h.wantPhase(testID, volume.Retained)
		h.stop()
	})
}

// TestDeletionsLeaveWorkersToCalls: in a pod with few threads, too.
func TestDeletionsLeaveWorkersToCalls(t *testing.T) {
	for workers, want := range map[int]int{1: 1, 3: 1, 64: 16, 256: 64, actors.MaxWorkers: maxDeletions} {
		if got := deletionsWithin(workers); got != want {
			t.Errorf("%d workers delete %d volumes at once, want %d", workers, got, want)
		}
	}
}
