package ephemeral

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// TestRemove deletes a volume as its expiry would, and says that a person did.
func TestRemove(t *testing.T) {
	withLoggedNode(t, func(*testNode) {}, func(t *testing.T, h *testNode, log *lines) {
		wantError(t, h.node.Purge(t.Context(), testID, "root", ""), volume.ErrNotFound)
		h.publish()
		h.writeMarker(testPod, testID)
		wantError(t, h.node.Purge(t.Context(), testID, "root", ""), volume.ErrNotRetained)
		h.wantPhase(testID, volume.Publishing) // the mount is what says that it is published
		h.unpublish()
		time.Sleep(time.Hour)
		if err := h.node.Purge(t.Context(), testID, "root", ""); err != nil {
			t.Fatal(err)
		}
		h.wantGone(testPod, testID)
		wantError(t, h.node.Purge(t.Context(), testID, "root", ""), volume.ErrNotFound)
		log.wantOnly("deleted", named(map[string]any{"reason": "purged", "kept": duration.Format(time.Hour)}))
		h.wantMetrics("purged", nil, metricstest.Values{
			`katbox_evictions_total{reason="purged"}`: 1, `katbox_evictions_total{reason="expired"}`: 0, `katbox_erased_volumes_total`: 1,
			`katbox_deadline_lateness_seconds_count`: 0,
		})
	})
}

// TestRemoveThatFails is answered, and leaves the volume as it was if nothing was recorded.
func TestRemoveThatFails(t *testing.T) {
	withLoggedNode(t, func(*testNode) {}, func(t *testing.T, h *testNode, log *lines) {
		h.retain()
		deadline := time.Now().Add(testLifespan)
		for name, tt := range map[string]struct {
			fail, repair func()
			want         error
		}{
			"record":      {func() { h.records.fail(func([]volume.Change) error { return unix.EIO }) }, func() { h.records.fail(nil) }, unix.EIO},
			"mount table": {func() { h.table.fail(unix.EMFILE) }, func() { h.table.fail(nil) }, volume.ErrUncertain},
			"mounted elsewhere": {
				func() {
					if err := h.mounter.Mount(h.data(testPod, testID), "/mnt", "", nil); err != nil {
						t.Error(err)
					}
				}, h.mounter.forgetMounts, volume.ErrUncertain,
			},
		} {
			tt.fail()
			for range 2 {
				if err := h.node.Purge(t.Context(), testID, "root", ""); !errors.Is(err, tt.want) {
					t.Errorf("%s: %v, want %v", name, err, tt.want)
				}
				synctest.Wait()
			}
			tt.repair()
			d, err := h.node.Describe(t.Context(), testID)
			if err != nil || d.Record.Phase != volume.Retained || !d.Deadline.Equal(deadline) {
				t.Errorf("%s: described as %+v, %v", name, d, err)
			}
			h.read().Close()
		}
		h.wantMetrics("failed", counted{volume.Retained: 1}, metricstest.Values{`katbox_stuck_volumes{phase="Deleting"}`: 0})
		if failed := log.with("a volume cannot be deleted, trying again until it can"); len(failed) != 0 {
			t.Errorf("logged %v", failed)
		}
		time.Sleep(time.Until(deadline))
		h.wantGone(testPod, testID)
		if reason := log.with("deleted")[0]["reason"]; reason != "expired" {
			t.Errorf("it went because it was %s", reason)
		}
	})
}

// TestRemoveThatFailsInTheMiddle is answered once, and the deletion is tried again by itself.
func TestRemoveThatFailsInTheMiddle(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.retain()
		h.records.fail(func(changes []volume.Change) error {
			if changes[0].Record == nil {
				return unix.EIO
			}
			return nil
		})
		wantError(t, h.node.Purge(t.Context(), testID, "root", ""), unix.EIO)
		synctest.Wait()
		if listed := h.list(volume.Selection{Limit: 1}); len(listed) != 0 {
			t.Errorf("listed %v", listed)
		}
		_, err := h.node.Read(t.Context(), testID)
		wantError(t, err, volume.ErrGone)
		wantError(t, h.node.Purge(t.Context(), testID, "root", ""), unix.EIO)
		h.records.fail(nil)
		time.Sleep(deleteBackoff.Longest)
		h.wantGone(testPod, testID)
	})
}

// TestRemoveTogether: all who ask meanwhile get the answer of the one deletion, which may be that of
// the expiry.
func TestRemoveTogether(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.retain()
		h.table.takes(time.Minute)
		time.Sleep(testLifespan + time.Second)
		answers := make(chan error)
		for range 3 {
			go func() { answers <- h.node.Purge(t.Context(), testID, "root", "") }()
		}
		synctest.Wait()
		wantError(t, func() error { _, err := h.node.Read(t.Context(), testID); return err }(), volume.ErrGone)
		for range 3 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		h.wantGone(testPod, testID)
		h.wantValues("purged", metricstest.Values{`katbox_evictions_total{reason="expired"}`: 1, `katbox_evictions_total{reason="purged"}`: 0})
	})
}

// TestRemoveOfMany is refused while as many volumes as may be are being deleted.
func TestRemoveOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		for i := range maxDeletions + 1 {
			h.retained(numberedPod(i), numbered(i), time.Minute, testLifespan)
		}
		h.start()
		h.table.takes(time.Second)
		answers := make(chan error, maxDeletions)
		for i := range maxDeletions {
			go func() { answers <- h.node.Purge(t.Context(), numbered(i), "root", "") }()
		}
		synctest.Wait()
		wantError(t, h.node.Purge(t.Context(), numbered(maxDeletions), "root", ""), volume.ErrUnavailable)
		for range maxDeletions {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if err := h.node.Purge(t.Context(), numbered(maxDeletions), "root", ""); err != nil {
			t.Error(err)
		}
		h.stop()
	})
}

// TestRemoveIsNotPatient: each removal takes as long as one reading of the mount table, because a
// person waits for it.
func TestRemoveIsNotPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		const volumes = 3
		for i := range volumes {
			h.retained(numberedPod(i), numbered(i), time.Minute, testLifespan)
		}
		h.start()
		h.table.takes(time.Second)
		began := time.Now()
		for i := range volumes {
			if err := h.node.Purge(t.Context(), numbered(i), "root", ""); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != volumes*time.Second {
			t.Errorf("%d removals took %v", volumes, took)
		}
		h.stop()
	})
}
