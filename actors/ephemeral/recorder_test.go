package ephemeral

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/store"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

func TestRecorderCommitsWhatWaitsTogether(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		release := make(chan struct{})
		h.records.fail(func([]volume.Change) error { <-release; return nil })
		var wg sync.WaitGroup
		for i := range 100 {
			pod := volume.PodUID(numbered(i))
			h.makePod(pod)
			p := volume.Publication{ID: numbered(i), Pod: pod, Target: volume.Target{Path: h.target(pod, "mount")}}
			wg.Go(func() {
				if err := h.node.Publish(t.Context(), p); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if h.records.commits != 2 {
			t.Errorf("%d commits for 100 volumes, want 2: the first one, and all that waited for it", h.records.commits)
		}
		metricstest.Of(t, h.metrics).Want(t, "afterwards", metricstest.Values{
			`katbox_store_commit_changes_sum`: 100, `katbox_store_commit_changes_count`: 2, `katbox_store_commit_changes_bucket{le="64"}`: 1,
		})
	})
}

func TestFailedCommitFailsAllThatItHeld(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		broken := errors.New("broken disk")
		h.records.fail(func([]volume.Change) error { return broken })
		for range 3 {
			wantError(t, h.node.Publish(t.Context(), h.publication()), broken)
		}
		h.records.fail(nil)
		h.publish()
	})
}

func TestPanickingStoreIsAnError(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.records.fail(func([]volume.Change) error { panic("broken for the test") })
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrUncertain)
		h.records.fail(nil)
		h.publish()
	})
}

func TestDamagedStoreEndsTheNode(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.records.fail(func([]volume.Change) error { return store.ErrDamaged })
		wantError(t, h.node.Publish(t.Context(), h.publication()), store.ErrDamaged)
		synctest.Wait()
		select {
		case err := <-h.node.Failed():
			wantError(t, err, store.ErrDamaged)
		default:
			t.Error("the node goes on though nothing can be recorded")
		}
	})
}
