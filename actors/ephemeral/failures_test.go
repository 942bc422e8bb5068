package ephemeral

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// failingAt makes volume actors panic at the messages that fails picks.
func failingAt(fails func(message any) bool) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			if fails(envelope.Message) {
				panic("broken for the test")
			}
			next(c, envelope)
		}
	}
}

// isEnd reports whether a message tells a volume's actor that its operation has ended.
func isEnd(message any) bool { return fmt.Sprintf("%T", message) == "*actors.operationEnded" }

func withFailingNode(t *testing.T, more actor.ReceiverMiddleware, test func(t *testing.T, h *testNode)) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.more = []actor.ReceiverMiddleware{more}
		h.start()
		test(t, h)
		h.stop()
	})
}

// atEachFailure has a volume's actor fail once, at each of the messages of a publish in turn;
// failed reports whether it has.
func atEachFailure(t *testing.T, test func(t *testing.T, h *testNode, failed *atomic.Bool)) {
	t.Helper()
	for name, picks := range map[string]func(any) bool{
		"at the request": func(m any) bool { _, ok := m.(*messages.PublishVolume); return ok },
		"at the outcome": isEnd,
		"at the start":   func(m any) bool { _, ok := m.(*actor.Started); return ok },
	} {
		t.Run(name, func(t *testing.T) {
			var failed atomic.Bool
			once := func(m any) bool { return picks(m) && failed.CompareAndSwap(false, true) }
			withFailingNode(t, failingAt(once), func(t *testing.T, h *testNode) { test(t, h, &failed) })
		})
	}
}

func TestPanicAnswersTheCallerAndTheVolumeGoesOn(t *testing.T) {
	atEachFailure(t, func(t *testing.T, h *testNode, failed *atomic.Bool) {
		// The first call is answered, with whatever outcome, or its deadline ends it; the repeat
		// succeeds.
		_ = h.node.Publish(withTimeout(t, 2*time.Minute), h.publication())
		if !failed.Load() {
			t.Fatal("the actor did not fail")
		}
		time.Sleep(actors.RestartBackoff.Longest)
		if err := h.node.Publish(withTimeout(t, 2*time.Minute), h.publication()); err != nil {
			t.Fatalf("publish after the restart: %v", err)
		}
		if got := len(h.mounter.mounts()); got != 1 {
			t.Errorf("%d mounts, want 1", got)
		}
		h.unpublish()
		h.wantPhase(testID, volume.Retained)
	})
}

func TestActorThatKeepsFailingIsParkedAndDisturbsNobody(t *testing.T) {
	var broken atomic.Bool
	var starts atomic.Int64
	broken.Store(true)
	fails := func(m any) bool {
		switch m := m.(type) {
		case *actor.Started:
			starts.Add(1)
		case *messages.PublishVolume:
			return broken.Load() && m.ID == testID
		case *messages.Resume:
			return broken.Load() && starts.Load() > 1
		}
		return false
	}
	withFailingNode(t, failingAt(fails), func(t *testing.T, h *testNode) {
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrUncertain)
		time.Sleep(30 * time.Second)
		if got := starts.Load(); got != actors.MaxRestarts+1 {
			t.Errorf("started %d times, want %d: the limit is a limit", got, actors.MaxRestarts+1)
		}
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrUnavailable)

		h.makePod("other")
		other := h.publication()
		other.ID, other.Pod, other.Target.Path = "csi-other", "other", h.target("other", "mount")
		if err := h.node.Publish(t.Context(), other); err != nil {
			t.Errorf("another volume: %v", err)
		}

		broken.Store(false)
		time.Sleep(actors.ParkedBackoff.First)
		h.publish()
	})
}

func TestPanicInAnOperationIsAnError(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.mounter.fail(func(string) error { panic("broken for the test") }, nil)
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrUncertain)
		h.mounter.fail(nil, nil)
		h.publish()
	})
}

// TestPanicInADeletionIsTriedAgain: the volume is not kept for ever, and does not count as one that
// is being deleted.
func TestPanicInADeletionIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		var panics atomic.Int64
		h.log = funcr.New(func(_, line string) {
			if strings.Contains(line, "deleting without a record") && panics.Add(1) == 1 {
				panic("broken for the test")
			}
		}, funcr.Options{})
		h.retained("pod", testID, 0, time.Hour)
		h.records.fail(func([]volume.Change) error { return unix.ENOSPC })
		h.start()
		time.Sleep(time.Hour)
		synctest.Wait()
		if panics.Load() != 1 {
			t.Fatalf("%d panics, want 1", panics.Load())
		}
		h.records.fail(nil)
		time.Sleep(deleteBackoff.First)
		h.wantGone("pod", testID)
		h.stop()
	})
}

func TestPanicInTheSupervisorEndsTheNode(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.node.Root.Send(h.node.Supervisor(), (*messages.Pressure)(nil)) // which no disk sends
		synctest.Wait()
		select {
		case err := <-h.node.Failed():
			if err == nil {
				t.Error("failed without a reason")
			}
		default:
			t.Error("the node goes on with a broken supervisor")
		}
	})
}

// TestPublishMeetsExpiry has publishes and expiries of one volume meet at the same instant, in
// whatever order the scheduler picks: whatever publish was acknowledged has its data for as long as
// it is published.
func TestPublishMeetsExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.lifespan = time.Minute
		h.start()
		for range 200 {
			h.publish()
			h.writeMarker(testPod, testID)
			h.unpublish()
			time.Sleep(h.lifespan - time.Nanosecond)
			var wg sync.WaitGroup
			var err error
			wg.Go(func() {
				time.Sleep(time.Nanosecond)
				err = h.node.Publish(withTimeout(t, time.Minute), h.publication())
			})
			wg.Wait()
			synctest.Wait()
			if err != nil {
				wantError(t, err, volume.ErrBusy)
				h.publish()
			}
			if len(h.mounter.mounts()) != 1 {
				t.Fatalf("mounts: %v", h.mounter.mounts())
			}
			if _, ok := h.records.get(testID); !ok {
				t.Fatal("published without a record")
			}
			h.unpublish()
			time.Sleep(2 * h.lifespan)
			h.wantGone(testPod, testID)
		}
		h.stop()
	})
}

// TestLateWordsOfAnEarlierActor: the library delivers an actor's end before what it said last. A
// late "at rest" must not put a published volume to sleep as the retained one that it was, to be
// deleted under its pod.
func TestLateWordsOfAnEarlierActor(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		h.unpublish()
		old := h.wantPhase(testID, volume.Retained)
		h.publish()
		for received := range uint64(5) {
			h.node.Root.Send(h.node.Supervisor(), &messages.AtRest{ID: testID, Actor: "earlier", State: resting{record: &old}, Received: received})
			h.node.Root.Send(h.node.Supervisor(), &messages.Stuck{ID: testID, Actor: "earlier", Attempt: 1})
		}
		time.Sleep(2 * testLifespan)
		h.wantMarker("published, after late words of an earlier actor")
		h.unpublish()
		h.wantPhase(testID, volume.Retained)
	})
}

func TestStoppedNodeRefusesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.start()
		h.publish()
		h.stop()
		wantError(t, h.node.Publish(withTimeout(t, time.Minute), h.publication()), volume.ErrUnavailable)
		wantError(t, h.node.Ready(withTimeout(t, time.Minute)), volume.ErrUnavailable)
		time.Sleep(2 * time.Second)
	})
}

// TestStopMeetsExpiry stops at the instant when volumes fall due.
func TestStopMeetsExpiry(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			h := newTestNode(t)
			for i := range 10 {
				h.retained("pod", numbered(i), 0, time.Hour)
			}
			h.start()
			time.Sleep(time.Hour)
			h.stop()
			for i := range 10 {
				if _, known := h.records.get(numbered(i)); !known && h.hasMarker("pod", numbered(i)) {
					t.Errorf("volume %d is there without a record", i)
				}
			}
		})
	}
}

// TestStopWithVolumesThatAreDue: while a stop waits for an operation, no deletion begins. Neither
// those nor the one that the stop interrupts are logged as deletions that failed.
func TestStopWithVolumesThatAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		lines := &list[string]{}
		h.log = funcr.New(func(_, line string) { lines.add(line) }, funcr.Options{})
		for i := range 10 {
			h.retained("pod", numbered(i), 0, time.Hour)
		}
		h.retained("pod", testID, 0, time.Hour-2*time.Second)
		h.start()
		time.Sleep(time.Hour - 3*time.Second)
		h.table.takes(5 * time.Second)
		time.Sleep(2 * time.Second)
		h.mounter.fail(func(string) error { time.Sleep(10 * time.Second); return nil }, nil)
		other := h.publication()
		other.ID = "csi-other"
		go func() { _ = h.node.Publish(t.Context(), other) }()
		synctest.Wait()
		h.stop()
		for _, line := range lines.get() {
			if strings.Contains(line, "cannot be deleted") {
				t.Error(line)
			}
		}
	})
}

func TestIdleVolumesHaveNoActor(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.unpublish()
		_ = h.node.Unpublish(t.Context(), "csi-never-seen", h.target(testPod, "other"))
		synctest.Wait()
		volumes := 0
		for _, shard := range h.node.Root.ActorSystem().ProcessRegistry.LocalPIDs.LocalPIDs {
			for name := range shard.Items() {
				if strings.Contains(name, "volume") {
					volumes++
				}
			}
		}
		if volumes != 0 {
			t.Errorf("%d volume actors left, want none", volumes)
		}
	})
}
