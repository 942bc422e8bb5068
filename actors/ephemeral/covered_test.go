package ephemeral

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/scratch"
)

// failure is what the node has failed with; nil when it has not.
func (h *testNode) failure() error {
	synctest.Wait()
	select {
	case err := <-h.node.Failed():
		return err
	default:
		return nil
	}
}

// TestMovedWorkingDirectoryEndsTheNode, also when nothing is due.
func TestMovedWorkingDirectoryEndsTheNode(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		time.Sleep(longestPodsInterval)
		if err := h.failure(); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(h.root, "work"), filepath.Join(h.root, "aside")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(longestPodsInterval)
		wantError(t, h.failure(), scratch.ErrCovered)
	})
}

// TestCoveredWorkingDirectoryDeletesNothing: where data is mounted cannot be told.
func TestCoveredWorkingDirectoryDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.retained("gone", testID, 0, testLifespan)
		h.start()
		h.table.fail(scratch.ErrCovered)
		time.Sleep(testLifespan)
		wantError(t, h.failure(), scratch.ErrCovered)
		if !h.hasMarker("gone", testID) {
			t.Error("deleted")
		}
		h.wantPhase(testID, volume.Retained)
		h.stop()
	})
}

// TestUnreadableMountTableEndsNothing: it is read again.
func TestUnreadableMountTableEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.retained("gone", testID, 0, testLifespan)
		h.start()
		h.table.fail(errors.New("too many open files"))
		time.Sleep(testLifespan)
		if err := h.failure(); err != nil || !h.hasMarker("gone", testID) {
			t.Errorf("failed with %v", err)
		}
		h.table.fail(nil)
		time.Sleep(deleteBackoff.Longest)
		h.wantGone("gone", testID)
		h.stop()
	})
}
