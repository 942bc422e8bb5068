package ephemeral

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// wantListed checks that the test node's volume is in the lists, whatever the pages are, can be read, and
// is not said to be awake.
func (h *testNode) wantListed(when string, want ...volume.ID) {
	h.t.Helper()
	for limit := 1; limit <= len(want)+1; limit++ {
		if listed := h.list(volume.Selection{Limit: limit}); !slices.Equal(listed, want) {
			h.t.Errorf("%s: listed %v in pages of %d, want %v", when, listed, limit, want)
		}
	}
	if d, err := h.node.Describe(h.t.Context(), testID); err != nil || d.Record.Phase != volume.Retained || d.Deadline.IsZero() {
		h.t.Errorf("%s: described as %+v, %v", when, d, err)
	}
	if awake, err := h.node.Awake(h.t.Context()); err != nil || len(awake) != 0 {
		h.t.Errorf("%s: awake: %+v, %v", when, awake, err)
	}
	if listed, err := h.node.Holdings(h.t.Context()); err != nil || sumOf(listed) != len(want) {
		h.t.Errorf("%s: holdings %+v, %v", when, listed, err)
	}
}

func sumOf(holdings []volume.Holding) (n int) {
	for _, of := range holdings {
		n += of.Volumes
	}
	return n
}

// TestListedWhenUnpublished: once an unpublish is answered the lists have the volume, though a request that
// met the unpublish keeps it awake for as long as the disk takes.
func TestListedWhenUnpublished(t *testing.T) {
	for name, ask := range map[string]func(h *testNode) error{
		"own": func(h *testNode) error { return h.node.Own(h.t.Context(), testID, testPod, nightly) },
		"end": func(h *testNode) error { return h.node.End(h.t.Context(), testID, testPod, volume.Failed) },
		"release": func(h *testNode) error {
			_, err := h.release()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				oldest, older := numbered(1), numbered(2)
				h.retained(numberedPod(1), oldest, 2*time.Hour, 4*time.Hour)
				h.retained(numberedPod(2), older, time.Hour, 4*time.Hour)
				k := &heldKernel{fakeMounter: h.mounter}
				h.kernel = k
				h.start()
				h.publish()
				h.wantHeldBack("published", older, oldest)
				unmount, write := k.hold(), h.holdCommit(2)
				unpublished, asked := make(chan error, 1), make(chan error, 1)
				go func() { unpublished <- h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")) }()
				synctest.Wait()
				go func() { asked <- ask(h) }()
				synctest.Wait()
				unmount()
				if err := <-unpublished; err != nil {
					t.Fatal(err)
				}
				h.wantListed("answered", testID, older, oldest)
				synctest.Wait() // it is being written
				h.wantListed("awake", testID, older, oldest)
				reading, err := h.node.Read(t.Context(), testID)
				if err != nil {
					t.Fatal(err)
				}
				write()
				if err := <-asked; err != nil {
					t.Error(err)
				}
				synctest.Wait()
				h.wantListed("asleep", testID, older, oldest)
				if err := reading.Lost.Err(); err != nil {
					t.Errorf("lost: %v", context.Cause(reading.Lost))
				}
				reading.Close()
				h.stop()
			})
		})
	}
}

// wantHeldBack checks that a list has these volumes and not the test node's.
func (h *testNode) wantHeldBack(when string, want ...volume.ID) {
	h.t.Helper()
	if listed := h.list(volume.Selection{Limit: 10}); !slices.Equal(listed, want) {
		h.t.Errorf("%s: listed %v, want %v", when, listed, want)
	}
}

// TestNotListedWhilePublishedAgain: a publish that was asked for while an unpublish ran, and that waits
// behind another request, is not undone by the news that the volume is retained.
func TestNotListedWhilePublishedAgain(t *testing.T) {
	withHeldNode(t, func(t *testing.T, h *testNode, k *heldKernel) {
		h.publish()
		unmount, write := k.hold(), h.holdCommit(2)
		unpublished, owned, published := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() { unpublished <- h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")) }()
		synctest.Wait()
		go func() { owned <- h.node.Own(t.Context(), testID, testPod, nightly) }()
		synctest.Wait()
		unmount()
		if err := <-unpublished; err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the owner is being written
		reading, err := h.node.Read(t.Context(), testID)
		if err != nil {
			t.Fatal(err)
		}
		go func() { published <- h.node.Publish(t.Context(), h.publication()) }()
		synctest.Wait() // it waits for the owner
		h.wantHeldBack("to be published")
		wantError(t, context.Cause(reading.Lost), volume.ErrNotRetained)
		write()
		if err := <-owned; err != nil {
			t.Error(err)
		}
		h.wantHeldBack("owned")
		if err := <-published; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		h.wantHeldBack("published")
		_, err = h.node.Read(t.Context(), testID)
		wantError(t, err, volume.ErrNotRetained)
		reading.Close()
	})
}

// TestNotListedWhileAPublishIsOnItsWay: the news that a volume is retained may meet a publish that its
// actor does not know yet.
func TestNotListedWhileAPublishIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		late := &messages.PublishVolume{}
		h.more = []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
				switch {
				case envelope.Message == late:
					return // its actor has not got it yet
				case isEnd(envelope.Message) && late.ID != "": // the unpublish has ended, which the actor is about to say
					h.node.Root.Send(h.node.Supervisor(), late)
				}
				next(c, envelope)
			}
		}}
		h.start()
		h.publish()
		late.Publication = h.publication()
		late.Routing = messages.Routing{ID: testID}
		h.unpublish()
		synctest.Wait()
		h.wantHeldBack("to be published")
		_, err := h.node.Read(t.Context(), testID)
		wantError(t, err, volume.ErrNotRetained)
		h.stop()
	})
}

// TestReadAtOnceAfterAPublishThatFailed, whatever has refused it: the volume is retained as before, though its actor may
// not have ended yet.
func TestReadAtOnceAfterAPublishThatFailed(t *testing.T) {
	for name, change := range map[string]func(h *testNode, m *messages.PublishVolume){
		"too late": func(_ *testNode, m *messages.PublishVolume) { m.Deadline = time.Now().Add(-time.Second) },
		"not mounted": func(h *testNode, _ *messages.PublishVolume) {
			h.mounter.fail(func(string) error { return unix.EIO }, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.retain()
				for range 100 {
					m := &messages.PublishVolume{Routing: messages.Routing{ID: testID}, Publication: h.publication()}
					change(h, m)
					_, published := actors.Ask(t.Context(), h.node.Root, h.node.Supervisor(), m)
					reading, err := h.node.Read(t.Context(), testID)
					if published == nil || err != nil {
						t.Errorf("published: %v, read: %v", published, err)
						return
					}
					reading.Close()
				}
				h.wantListed("refused", testID)
			})
		})
	}
}
