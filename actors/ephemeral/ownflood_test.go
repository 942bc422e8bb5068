package ephemeral

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
)

// holdCommit holds a commit, the nth from now on, until release is called.
func (h *testNode) holdCommit(nth int64) (release func()) {
	held := make(chan struct{})
	var count atomic.Int64
	h.records.fail(func([]volume.Change) error {
		if count.Add(1) == nth {
			<-held
		}
		return nil
	})
	return func() { close(held) }
}

// TestOwnersTakeNoPlaceOfCalls: a gateway that says over and over whose a volume is makes no call fail.
func TestOwnersTakeNoPlaceOfCalls(t *testing.T) {
	for name, call := range map[string]func(h *testNode) error{
		"publish":   func(h *testNode) error { return h.node.Publish(h.t.Context(), h.publication()) },
		"unpublish": func(h *testNode) error { return h.node.Unpublish(h.t.Context(), testID, h.target(testPod, "mount")) },
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.retain()
				release := h.holdCommit(1)
				const flood = 2 * actors.MaxCallers
				owned, called := make(chan error, flood), make(chan error, 1)
				for range flood {
					go func() { owned <- h.node.Own(t.Context(), testID, testPod, nightly) }()
				}
				synctest.Wait()
				go func() { called <- call(h) }()
				synctest.Wait()
				release()
				if err := <-called; err != nil {
					t.Error(err)
				}
				kept := 0
				for range flood {
					switch err := <-owned; {
					case err == nil:
						kept++
					case !errors.Is(err, volume.ErrBusy):
						t.Error(err)
					}
				}
				if kept != 1+actors.MaxAsides {
					t.Errorf("%d are kept, want the first one and %d that waited", kept, actors.MaxAsides)
				}
			})
		})
	}
}

// TestQuestionsDoNotWaitForAnOwner that cannot be recorded, because the disk hangs.
func TestQuestionsDoNotWaitForAnOwner(t *testing.T) {
	withHeldNode(t, func(t *testing.T, h *testNode, k *heldKernel) {
		h.publish()
		unmount, write := k.hold(), h.holdCommit(2)
		unpublished, owned, answered := make(chan error, 1), make(chan error, 1), make(chan error, 2)
		go func() { unpublished <- h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")) }()
		synctest.Wait()
		go func() { owned <- h.node.Own(t.Context(), testID, testPod, nightly) }()
		synctest.Wait()
		unmount()
		if err := <-unpublished; err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the owner is being written
		go func() {
			d, err := h.node.Describe(t.Context(), testID)
			if err == nil && d.Record.Phase != volume.Retained {
				t.Errorf("described as %+v", d)
			}
			answered <- err
		}()
		go func() {
			_, err := h.node.Stats(t.Context(), testID, h.target(testPod, "mount"))
			if errors.Is(err, volume.ErrNotFound) {
				err = nil // it is mounted nowhere
			}
			answered <- err
		}()
		synctest.Wait()
		if len(answered) != 2 {
			t.Errorf("%d of 2 questions are answered", len(answered))
		}
		write()
		if err := errors.Join(<-answered, <-answered, <-owned); err != nil {
			t.Error(err)
		}
		h.wantOwner(nightly, nightly)
	})
}
