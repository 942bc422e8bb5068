package ephemeral

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/messages"
)

var (
	nightly = volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ns-1", Kind: "Job", Name: "batch", UID: "job-1",
		Job: "batch", JobIndex: "3"}
	denied = volume.Owner{Verdict: volume.Denied}
)

func (h *testNode) own(o volume.Owner) {
	h.t.Helper()
	if err := h.node.Own(h.t.Context(), testID, testPod, o); err != nil {
		h.t.Fatalf("own: %v", err)
	}
}

// wantOwner checks what is known of the test node's volume, in memory and on disk.
func (h *testNode) wantOwner(known, recorded volume.Owner) {
	h.t.Helper()
	d, err := h.node.Describe(h.t.Context(), testID)
	if err != nil || d.Record.Owner != known {
		h.t.Errorf("owner %+v, %v; want %+v", d.Record.Owner, err, known)
	}
	if r, ok := h.records.get(testID); !ok || r.Owner != recorded {
		h.t.Errorf("the owner on disk is %+v, want %+v", r.Owner, recorded)
	}
}

// wantAwake checks that the test node's volume is the only one that is awake, and its owner.
func (h *testNode) wantAwake(owner volume.Owner) {
	h.t.Helper()
	awake, err := h.node.Awake(h.t.Context())
	if err != nil || len(awake) != 1 || awake[0].Record.ID != testID || awake[0].Record.Owner != owner {
		h.t.Errorf("awake: %+v, %v; want the owner %+v", awake, err, owner)
	}
}

func (h *testNode) wantHoldings(want ...volume.Holding) {
	h.t.Helper()
	got, err := h.node.Holdings(h.t.Context())
	if err != nil || !slices.EqualFunc(got, want, func(a, b volume.Holding) bool {
		return a.Namespace == b.Namespace && a.NamespaceUID == b.NamespaceUID && a.Verdict == b.Verdict && a.Volumes == b.Volumes &&
			a.Newest.Equal(b.Newest) && a.Oldest.Equal(b.Oldest)
	}) {
		h.t.Errorf("holdings %+v, %v\nwant %+v", got, err, want)
	}
}

// TestOwnWhilePublished costs no commit, and is on disk with the unpublish. After a crash before
// that it has to be asked for again.
func TestOwnWhilePublished(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.wantAwake(volume.Owner{})
		commits := h.records.committed()
		h.own(nightly)
		h.own(denied) // comes too late
		h.wantAwake(nightly)
		h.wantOwner(nightly, volume.Owner{})

		h.restart()
		h.wantAwake(volume.Owner{})
		h.own(denied)
		h.own(nightly)
		if now := h.records.committed(); now != commits {
			t.Errorf("%d commits for an owner in memory", now-commits)
		}
		h.unpublish()
		synctest.Wait()
		if now := h.records.committed(); now != commits+1 {
			t.Errorf("%d commits for an unpublish", now-commits)
		}
		h.wantOwner(nightly, nightly)
		h.restart()
		h.wantOwner(nightly, nightly)
		h.publish() // the same pod
		h.wantAwake(nightly)
		h.wantOwner(nightly, nightly)
	})
}

// TestOwnWhileRetained is durable when it is answered, and changes nothing else: readers go on, and
// the volume keeps its deadline, its size and its place in lists.
func TestOwnWhileRetained(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.retain()
		time.Sleep(time.Minute) // it is measured
		before, err := h.node.Describe(t.Context(), testID)
		if err != nil || before.Size == (volume.Size{}) {
			t.Fatalf("%+v, %v", before, err)
		}
		reading := h.read()
		commits := h.records.committed()
		for i, said := range []volume.Owner{denied, denied, nightly, nightly, denied} {
			h.own(said)
			learned := []volume.Owner{denied, denied, nightly, nightly, nightly}[i]
			h.wantOwner(learned, learned)
			page, err := h.node.List(t.Context(), volume.Selection{Namespace: "default", Limit: 1})
			if err != nil || len(page.Volumes) != 1 || page.Volumes[0].Record.Owner != learned {
				t.Fatalf("listed %+v, %v; want the owner %+v", page.Volumes, err, learned)
			}
			synctest.Wait()
			after, err := h.node.Describe(t.Context(), testID)
			if err != nil || !after.Deadline.Equal(before.Deadline) || after.Size != before.Size || after.Record.Key() != before.Record.Key() {
				t.Errorf("described as %+v, %v; before as %+v", after, err, before)
			}
			if want := commits + []int{1, 1, 2, 2, 2}[i]; h.records.committed() != want {
				t.Errorf("%d commits, want %d", h.records.committed()-commits, want-commits)
			}
		}
		h.wantValues("owned", metricstest.Values{"katbox_retained_unmeasured_volumes": 0, `katbox_volumes{phase="Retained"}`: 1})
		for s, want := range map[*volume.Selection]int{
			{Namespace: "default", Tenancy: &volume.Tenancy{UID: "ns-1"}, Limit: 1}: 1,
			{Namespace: "default", Tenancy: &volume.Tenancy{UID: "ns-2"}, Limit: 1}: 0,
			{Job: "batch", OwnerKind: "Job", PodPrefix: "batch-", Limit: 1}:         1,
			{NoNamespace: true, Limit: 1}:                                           0,
		} {
			if listed := h.list(*s); len(listed) != want {
				t.Errorf("%+v lists %v", *s, listed)
			}
		}
		if err := reading.Lost.Err(); err != nil {
			t.Errorf("lost: %v", context.Cause(reading.Lost))
		}
		reading.Close()
		time.Sleep(time.Until(before.Deadline))
		h.wantGone(testPod, testID)
	})
}

// TestOwnerShowsAtOnce: once an owner is recorded the lists have it, before the volume sleeps again.
func TestOwnerShowsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.start()
		h.retain()
		h.stop()
		// A volume that was sent a message does not sleep before it has it. It must not be kept awake by
		// a Receive that waits: that may be in this goroutine, and would wait for itself.
		lost := &messages.OwnVolume{Routing: messages.Routing{ID: testID}}
		h.more = []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
				switch m, owns := envelope.Message.(*messages.OwnVolume); {
				case owns && m == lost:
					return
				case owns:
					h.node.Root.Send(h.node.Supervisor(), lost)
				}
				next(c, envelope)
			}
		}}
		h.start()
		at := h.wantPhase(testID, volume.Retained).Unpublished
		h.own(nightly)
		synctest.Wait()
		h.wantOwner(nightly, nightly)
		if listed := h.list(volume.Selection{Job: "batch", Limit: 1}); !slices.Equal(listed, []volume.ID{testID}) {
			t.Errorf("listed %v", listed)
		}
		h.wantHoldings(volume.Holding{Namespace: "default", NamespaceUID: "ns-1", Verdict: volume.Confirmed, Volumes: 1, Newest: at, Oldest: at})
		h.stop()
	})
}

// TestOwnRefuses what no volume can have, and volumes that are not known or go.
func TestOwnRefuses(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		own := func(pod volume.PodUID, o volume.Owner) error { return h.node.Own(t.Context(), testID, pod, o) }
		wantError(t, own(testPod, nightly), volume.ErrNotFound)
		h.publish()
		wantError(t, own(gonePod, nightly), volume.ErrNotFound)
		for field, o := range map[string]volume.Owner{
			"owner.verdict": {}, "owner.namespaceUID": {Verdict: volume.Confirmed, Kind: "Job"},
			"owner.name": {Verdict: volume.Confirmed, NamespaceUID: "ns", Name: strings.Repeat("n", 254)},
		} {
			var invalid *volume.InvalidError
			if err := own(testPod, o); !errors.As(err, &invalid) || invalid.Field != field {
				t.Errorf("%+v: %v, want an error of %s", o, err, field)
			}
		}
		h.unpublish()
		synctest.Wait()
		wantError(t, own(gonePod, nightly), volume.ErrNotFound)
		h.wantOwner(volume.Owner{}, volume.Owner{})
		h.table.takes(time.Minute)
		time.Sleep(testLifespan + time.Second)
		wantError(t, own(testPod, nightly), volume.ErrNotFound) // it is being deleted
		time.Sleep(2 * time.Minute)
		h.wantGone(testPod, testID)
		wantError(t, own(testPod, nightly), volume.ErrNotFound)
	})
}

// TestOwnOfAFailedDeletion: the volume keeps its wait.
func TestOwnOfAFailedDeletion(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.retain()
		h.table.fail(unix.EMFILE)
		time.Sleep(testLifespan + time.Second)
		wantError(t, h.node.Own(t.Context(), testID, testPod, nightly), volume.ErrNotFound)
		h.table.fail(nil)
		time.Sleep(2 * deleteBackoff.Longest)
		h.wantGone(testPod, testID)
	})
}

// TestOwnMeetsOtherOperations: whatever runs, nothing is lost.
func TestOwnMeetsOtherOperations(t *testing.T) {
	for name, tt := range map[string]struct {
		operation func(h *testNode) error
		recorded  volume.Owner
	}{
		"publish": {func(h *testNode) error { return h.node.Publish(h.t.Context(), h.publication()) }, volume.Owner{}},
		"unpublish": {func(h *testNode) error {
			return h.node.Unpublish(h.t.Context(), testID, h.target(testPod, "mount"))
		}, nightly},
	} {
		t.Run(name, func(t *testing.T) {
			withHeldNode(t, func(t *testing.T, h *testNode, k *heldKernel) {
				if name == "unpublish" {
					h.publish()
				}
				release := k.hold()
				done, owned := make(chan error, 1), make(chan error, 1)
				go func() { done <- tt.operation(h) }()
				synctest.Wait()
				go func() { owned <- h.node.Own(t.Context(), testID, testPod, nightly) }()
				synctest.Wait()
				release()
				if err := errors.Join(<-done, <-owned); err != nil {
					t.Fatal(err)
				}
				h.wantOwner(nightly, tt.recorded)
			})
		})
	}
}

// TestCallsWaitForAnOwner: a call that meets the change of a retained volume is not refused, nor
// does one wait for a gateway.
func TestCallsWaitForAnOwner(t *testing.T) {
	for name, call := range map[string]func(h *testNode) error{
		"publish":   func(h *testNode) error { return h.node.Publish(h.t.Context(), h.publication()) },
		"unpublish": func(h *testNode) error { return h.node.Unpublish(h.t.Context(), testID, h.target(testPod, "mount")) },
		"remove":    func(h *testNode) error { return h.node.Purge(h.t.Context(), testID, "root", "") },
		"own":       func(h *testNode) error { return h.node.Own(h.t.Context(), testID, testPod, denied) },
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.retain()
				at := h.wantPhase(testID, volume.Retained).Unpublished
				held := make(chan struct{})
				var once sync.Once
				h.records.fail(func([]volume.Change) error {
					once.Do(func() { <-held })
					return nil
				})
				owned, called := make(chan error, 1), make(chan error, 1)
				go func() { owned <- h.node.Own(t.Context(), testID, testPod, nightly) }()
				synctest.Wait()
				if listed := h.list(volume.Selection{Namespace: "default", Limit: 1}); !slices.Equal(listed, []volume.ID{testID}) {
					t.Errorf("listed %v", listed)
				}
				h.wantHoldings(volume.Holding{Namespace: "default", Volumes: 1, Newest: at, Oldest: at})
				h.read().Close()
				go func() { called <- call(h) }()
				synctest.Wait()
				close(held)
				if err := errors.Join(<-owned, <-called); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				switch name {
				case "publish":
					h.wantAwake(nightly)
					h.wantHoldings()
				case "remove":
					h.wantGone(testPod, testID)
					h.wantHoldings()
				default:
					h.wantOwner(nightly, nightly)
					h.wantHoldings(volume.Holding{
						Namespace: "default", NamespaceUID: "ns-1", Verdict: volume.Confirmed, Volumes: 1, Newest: at, Oldest: at,
					})
				}
			})
		})
	}
}

// TestOwnThatCannotBeRecorded: the volume stays as it was, and none goes early to make room.
func TestOwnThatCannotBeRecorded(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.retain()
		for _, cause := range []error{unix.EIO, unix.ENOSPC} {
			h.records.fail(func([]volume.Change) error { return cause })
			wantError(t, h.node.Own(t.Context(), testID, testPod, nightly), cause)
			h.wantOwner(volume.Owner{}, volume.Owner{})
			h.records.fail(nil)
			time.Sleep(time.Minute)
			h.wantPhase(testID, volume.Retained)
		}
		h.own(nightly)
		h.wantOwner(nightly, nightly)
	})
}

// TestPublishedIsTold once for each publish that did something, and only while nobody has asked.
func TestPublishedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		var mu sync.Mutex
		var told []volume.Record
		h.published = func(r volume.Record) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, r)
		}
		want := func(when string, count int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(told) != count {
				t.Fatalf("%s: told %+v", when, told)
			}
			if count == 1 && (told[0].ID != testID || told[0].Pod != testPod || told[0].PodName != "batch-1" || told[0].Phase != volume.Published) {
				t.Errorf("%s: told %+v", when, told[0])
			}
			told = nil
		}
		h.start()
		h.mounter.fail(always(unix.EIO), nil)
		if err := h.node.Publish(t.Context(), h.publication()); err == nil {
			t.Fatal("published")
		}
		want("failed", 0)
		h.mounter.fail(nil, nil)
		h.publish()
		want("published", 1)
		h.publish()
		want("repeated", 0)
		h.restart()
		want("started", 0) // the node's Awake tells
		h.publish()
		want("repeated after a restart", 0)
		h.unpublish()
		want("unpublished", 0)
		h.publish()
		want("published again", 1)
		h.own(denied)
		h.unpublish()
		synctest.Wait()
		h.publish()
		want("published again, and asked before", 0)

		h.stop() // its record is lost
		h.records.lose()
		h.start()
		want("found mounted", 0)
		h.publish()
		want("found mounted, and its names come", 1)
		h.stop()
	})
}

// TestHoldingsCostNothing while nothing has changed.
func TestHoldingsCostNothing(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.wantHoldings()
		h.retain()
		first, err := h.node.Holdings(t.Context())
		if err != nil || len(first) != 1 {
			t.Fatalf("%v, %v", first, err)
		}
		h.read().Close()
		time.Sleep(time.Minute) // it is measured
		second, err := h.node.Holdings(t.Context())
		if err != nil || len(second) != 1 || &second[0] != &first[0] {
			t.Errorf("%v, %v; want the same as before", second, err)
		}
		h.own(nightly)
		if third, err := h.node.Holdings(t.Context()); err != nil || third[0].NamespaceUID != "ns-1" || first[0].NamespaceUID != "" {
			t.Errorf("%v, %v, and before %v", third, err, first)
		}
	})
}
