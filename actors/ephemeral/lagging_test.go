package ephemeral

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// withLaggingNode is withNode with a journal, in which every change is taken over that may lag.
func withLaggingNode(t *testing.T, test func(t *testing.T, h *testNode)) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.lag = actors.Lag{Sync: time.Second, Patience: 30 * time.Second}
		h.records.onJournal = func(volume.Change) error { return nil }
		h.start()
		test(t, h)
		h.stop()
	})
}

// TestFirstPublishAndUnpublishWaitForNoDisk: on a disk that takes no commit both are answered, and what waits for the
// disk waits.
func TestFirstPublishAndUnpublishWaitForNoDisk(t *testing.T) {
	withLaggingNode(t, func(t *testing.T, h *testNode) {
		hang := make(chan struct{})
		h.records.setOnCommit(func([]volume.Change) error { <-hang; return nil })
		h.publish()
		h.unpublish()
		if journal := h.records.waiting(); len(journal) != 2 {
			t.Fatalf("%d changes are taken over, want 2", len(journal))
		}
		republished := make(chan error, 1)
		go func() { republished <- h.node.Publish(t.Context(), h.publication()) }()
		synctest.Wait()
		select {
		case err := <-republished:
			t.Fatalf("a publish of a retained volume is answered before it is on the disk: %v", err)
		default:
		}
		close(hang)
		if err := <-republished; err != nil {
			t.Fatal(err)
		}
		h.wantPhase(testID, volume.Publishing)
	})
}

// TestLaggingIsCommittedInTime: one commit for all that was answered within the time, and none where nothing was.
func TestLaggingIsCommittedInTime(t *testing.T) {
	withLaggingNode(t, func(t *testing.T, h *testNode) {
		before := h.records.committed()
		h.publish()
		h.unpublish()
		time.Sleep(h.lag.Sync - time.Millisecond)
		synctest.Wait()
		if got := h.records.committed() - before; got != 0 {
			t.Errorf("%d commits before the time", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := h.records.committed() - before; got != 1 {
			t.Errorf("%d commits, want 1", got)
		}
		metricstest.Of(t, h.metrics).Want(t, "after the commit", metricstest.Values{`katbox_store_commit_changes_sum`: 2,
			`katbox_store_commit_changes_count`: 1})
		h.wantPhase(testID, volume.Retained)
		time.Sleep(10 * h.lag.Sync)
		synctest.Wait()
		if got := h.records.committed() - before; got != 1 {
			t.Errorf("%d commits where nothing has changed", got)
		}
	})
}

// TestLaggingWantsRoom: when what was answered finds no room on the disk, room is made though no call has failed; it is
// tried again, and said.
func TestLaggingWantsRoom(t *testing.T) {
	withLaggingNode(t, func(t *testing.T, h *testNode) {
		var full atomic.Bool
		full.Store(true)
		measured := func() int {
			h.disk.mu.Lock()
			defer h.disk.mu.Unlock()
			return h.disk.measured
		}
		h.records.setOnCommit(func([]volume.Change) error {
			if full.Load() {
				return unix.ENOSPC
			}
			return nil
		})
		h.publish()
		asked := measured()
		time.Sleep(h.lag.Sync)
		synctest.Wait()
		if measured() == asked {
			t.Error("the disk is not looked at")
		}
		full.Store(false)
		time.Sleep(h.lag.Sync)
		synctest.Wait()
		h.wantPhase(testID, volume.Publishing)
	})
}

// TestLaggingEndsWithPatience: the node says so once what was answered is not on the disk for too long.
func TestLaggingEndsWithPatience(t *testing.T) {
	withLaggingNode(t, func(t *testing.T, h *testNode) {
		h.records.setOnCommit(func([]volume.Change) error { return unix.EIO })
		h.publish()
		time.Sleep(h.lag.Patience)
		synctest.Wait()
		if err := h.node.CheckRecords(); err != nil {
			t.Errorf("within its patience: %v", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if h.node.CheckRecords() == nil {
			t.Error("nothing says that the disk takes no records")
		}
		h.records.setOnCommit(nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if err := h.node.CheckRecords(); err != nil {
			t.Errorf("all is on the disk: %v", err)
		}
	})
}

// TestWithoutAJournalCallsWait, as with --record-sync=0.
func TestWithoutAJournalCallsWait(t *testing.T) {
	for name, set := range map[string]func(h *testNode){
		"no lag": func(h *testNode) { h.lag = actors.Lag{} },
		"full":   func(h *testNode) { h.records.onJournal = func(volume.Change) error { return errors.New("full") } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				h.lag = actors.Lag{Sync: time.Second, Patience: 30 * time.Second}
				h.records.onJournal = func(volume.Change) error { return nil }
				set(h)
				h.start()
				before := h.records.committed()
				h.publish()
				h.unpublish()
				if got := h.records.committed() - before; got != 2 {
					t.Errorf("%d commits, want 2", got)
				}
				h.stop()
			})
		})
	}
}

// TestDeletionWaitsForTheDisk, and so does what a person decides.
func TestDeletionWaitsForTheDisk(t *testing.T) {
	withLaggingNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.unpublish()
		if _, err := h.node.Pin(t.Context(), testID, time.Now().Add(time.Hour), "ann", "to look"); err != nil {
			t.Fatal(err)
		}
		if r := h.wantPhase(testID, volume.Retained); r.Hold.Kind != volume.Pinned {
			t.Errorf("the pin is answered and not on the disk: %+v", r.Hold)
		}
		if err := h.node.Purge(t.Context(), testID, "ann", ""); err != nil {
			t.Fatal(err)
		}
		h.wantGone(testPod, testID)
		if waiting := h.records.waiting(); len(waiting) != 0 {
			t.Errorf("taken over instead of recorded: %+v", waiting)
		}
	})
}

// TestOutcomeLearnedInMemoryWaits: what is on the disk of a volume in use decides whether its next change may lag, and
// not what was learned since.
func TestOutcomeLearnedInMemoryWaits(t *testing.T) {
	withLaggingNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		if err := h.node.End(t.Context(), testID, testPod, volume.Succeeded); err != nil {
			t.Fatal(err)
		}
		h.mounter.onUnmount = func(string) error { return unix.EBUSY }
		if err := h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")); err == nil {
			t.Fatal("unpublished")
		}
		if err := h.node.End(t.Context(), testID, testPod, volume.Failed); err != nil {
			t.Fatal(err)
		}
		h.mounter.mu.Lock()
		h.mounter.onUnmount = nil
		h.mounter.mu.Unlock()
		h.unpublish()
		if r := h.wantPhase(testID, volume.Retained); r.Outcome != volume.Failed {
			t.Errorf("recorded as %s", r.Outcome)
		}
		if slices.ContainsFunc(h.records.waiting(), func(c volume.Change) bool { return c.Record.Phase == volume.Retained }) {
			t.Error("the lifespan got longer, and that is not on the disk")
		}
	})
}

// TestDirectoryOfAPodThatComesBack: a power cut took the record of a volume. The first search after the reboot leaves
// its directory to the kubelet while the pod is there, and finds others.
func TestDirectoryOfAPodThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.rebooted = true
		other := volume.ID("csi-" + strings.Repeat("0", 64))
		for _, dir := range []string{h.data(testPod, testID), h.data(gonePod, other)} {
			if err := os.MkdirAll(dir, 0o750); err != nil {
				t.Fatal(err)
			}
		}
		h.writeMarker(testPod, testID)
		h.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		if r, ok := h.records.get(testID); ok {
			t.Errorf("retained before the kubelet has published it again: %+v", r)
		}
		h.wantPhase(other, volume.Retained)
		h.publish()
		h.wantPhase(testID, volume.Publishing)
		h.wantMarker("published again")
		left := volume.ID("csi-" + strings.Repeat("1", 64))
		if err := os.MkdirAll(h.data(testPod, left), 0o750); err != nil {
			t.Fatal(err)
		}
		h.restart()
		time.Sleep(testGrace - time.Minute)
		synctest.Wait()
		if _, ok := h.records.get(left); ok {
			t.Error("retained within the grace time")
		}
		time.Sleep(2 * time.Minute)
		h.wantPhase(left, volume.Retained) // no kubelet has published it
		h.stop()
	})
}
