package ephemeral

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// counted are the volumes by phase that the metrics should have.
type counted map[volume.Phase]int

// wantMetrics checks the volumes by phase and what else the metrics should say, and compares them
// with the records, the mounts and the trash as they are.
func (h *testNode) wantMetrics(when string, phases counted, want metricstest.Values) {
	h.t.Helper()
	synctest.Wait()
	got := metricstest.Of(h.t, h.metrics)
	all := metricstest.Values{}
	for phase := volume.Publishing; phase.Valid(); phase++ {
		all[fmt.Sprintf("katbox_volumes{phase=%q}", phase)] = float64(phases[phase])
	}
	got.Want(h.t, when, all)
	got.Want(h.t, when, want)
	h.compareWithTruth(when, got)
}

// compareWithTruth checks the metrics of a node at rest against what is there.
func (h *testNode) compareWithTruth(when string, got metricstest.Values) {
	h.t.Helper()
	live, retained := 0, 0
	for _, record := range h.records.all() {
		switch {
		case record.Phase.Live():
			live++
		case record.Phase == volume.Retained:
			retained++
		}
	}
	trash, err := h.scratch.TrashSize()
	if err != nil {
		h.t.Fatal(err)
	}
	counts := func(phase volume.Phase) float64 { return got[fmt.Sprintf("katbox_volumes{phase=%q}", phase)] }
	if sum := counts(volume.Publishing) + counts(volume.Published) + counts(volume.Unpublishing); sum != float64(live) {
		h.t.Errorf("%s: the metrics have %v volumes that are live, and %d are recorded", when, sum, live)
	}
	if counts(volume.Retained) != float64(retained) {
		h.t.Errorf("%s: the metrics have %v volumes retained, and %d are recorded", when, counts(volume.Retained), retained)
	}
	if sum := got["katbox_trash_entries"] + got["katbox_trash_set_aside_entries"]; sum != float64(trash) {
		h.t.Errorf("%s: the metrics have %v entries of the trash, and it has %v", when, sum, trash)
	}
	if mounts := len(h.mounter.mounts()); got["katbox_mounts"] != float64(mounts) {
		h.t.Errorf("%s: the metrics have %v mounts, and there are %d", when, got["katbox_mounts"], mounts)
	}
	committed := h.records.committed() - h.committed
	if commits := got["katbox_store_commit_duration_seconds_count"] - got["katbox_store_commit_errors_total"]; commits != float64(committed) {
		h.t.Errorf("%s: the metrics have %v commits, and there were %d", when, commits, committed)
	}
}

func TestMetricsOfALife(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.wantMetrics("at the start", nil, metricstest.Values{"katbox_mounts": 0, "katbox_store_reserved": 1, "katbox_pods_directory_entries": 2})
		h.publish()
		h.writeMarker(testPod, testID)
		published := metricstest.Values{"katbox_mounts": 1}
		h.wantMetrics("published", counted{volume.Published: 1}, published)
		h.publish()
		h.wantMetrics("published twice", counted{volume.Published: 1}, published)
		h.unpublish()
		h.wantMetrics("retained", counted{volume.Retained: 1}, metricstest.Values{"katbox_mounts": 0})
		h.unpublish()
		h.wantMetrics("unpublished twice", counted{volume.Retained: 1}, nil)
		h.publish()
		h.wantMetrics("woken by a publish", counted{volume.Published: 1}, published)
		h.unpublish()
		h.wantMetrics("asleep again", counted{volume.Retained: 1}, metricstest.Values{
			`katbox_evictions_total{reason="expired"}`: 0, "katbox_store_commit_errors_total": 0, "katbox_unmount_retries_total": 0,
		})
		time.Sleep(testLifespan)
		h.wantGone(testPod, testID)
		h.wantMetrics("expired", nil, metricstest.Values{
			`katbox_evictions_total{reason="expired"}`: 1, `katbox_evictions_total{reason="bytes"}`: 0,
			`katbox_deadline_lateness_seconds_count`: 1, `katbox_deadline_lateness_seconds_bucket{le="1"}`: 1,
			`katbox_erased_volumes_total`: 1, `katbox_erased_entries_total`: 2, // the marker and the data directory
			`katbox_store_commit_duration_seconds_count`: float64(h.records.committed()),
			`katbox_store_commit_changes_sum`:            float64(h.records.committed()),
			`katbox_actor_restarts_total`:                0,
		})
	})
}

// TestMetricsOfLateDeletions: a volume whose deletion fails is deleted late.
func TestMetricsOfLateDeletions(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.unpublish()
		h.records.fail(func([]volume.Change) error { return unix.EIO })
		time.Sleep(testLifespan + time.Hour)
		h.wantMetrics("its deletion fails", counted{volume.Retained: 1}, metricstest.Values{
			`katbox_stuck_volumes{phase="Deleting"}`: 1, `katbox_evictions_total{reason="expired"}`: 0, `katbox_deadline_lateness_seconds_count`: 0,
		})
		h.records.fail(nil)
		time.Sleep(deleteBackoff.Longest)
		h.wantMetrics("deleted", nil, metricstest.Values{
			`katbox_stuck_volumes{phase="Deleting"}`: 0, `katbox_evictions_total{reason="expired"}`: 1,
			`katbox_deadline_lateness_seconds_bucket{le="900"}`: 0, `katbox_deadline_lateness_seconds_bucket{le="14400"}`: 1,
		})
	})
}

// TestMetricsOfEarlyDeletions tell bytes from inodes.
func TestMetricsOfEarlyDeletions(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*fakeDisk)
		reason string
		factor float64
	}{
		"few bytes":                {func(d *fakeDisk) { d.free = 75 }, "bytes", 0.5},
		"few inodes":               {func(d *fakeDisk) { d.inodes, d.freeInodes = 2000, 150 }, "inodes", 0.5},
		"few of both, inodes less": {func(d *fakeDisk) { d.free, d.inodes, d.freeInodes = 85, 2000, 150 }, "inodes", 0.5},
		"few of both, bytes less":  {func(d *fakeDisk) { d.free, d.inodes, d.freeInodes = 75, 2000, 170 }, "bytes", 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				h.retained("pod", "csi-old", 10*time.Hour, testLifespan)
				h.retained("pod", "csi-new", time.Hour, testLifespan)
				h.start()
				h.wantMetrics("at the start", counted{volume.Retained: 2}, metricstest.Values{`katbox_pressure_ratio`: 1})
				h.disk.mu.Lock()
				tt.change(h.disk)
				h.disk.mu.Unlock()
				time.Sleep(time.Minute)
				h.wantGone("pod", "csi-old")
				want := metricstest.Values{
					`katbox_evictions_total{reason="expired"}`: 0, `katbox_evictions_total{reason="bytes"}`: 0,
					`katbox_evictions_total{reason="inodes"}`: 0,
					`katbox_deadline_lateness_seconds_count`:  0, `katbox_erased_volumes_total`: 1,
					`katbox_pressure_ratio`: tt.factor, `katbox_filesystem_size_bytes`: 1000, `katbox_filesystem_headroom_bytes`: 100,
					`katbox_filesystem_free_bytes`: float64(h.disk.free), `katbox_filesystem_free_inodes`: float64(h.disk.freeInodes),
					`katbox_filesystem_inodes`: float64(h.disk.inodes), `katbox_filesystem_headroom_inodes`: float64(h.disk.inodes) / 10,
				}
				want[fmt.Sprintf(`katbox_evictions_total{reason=%q}`, tt.reason)] = 1
				h.wantMetrics("under pressure", counted{volume.Retained: 1}, want)
				h.stop()
			})
		})
	}
}

// TestMetricsOfACallWithoutRoom: what goes for it counts as the scarcer one, though the disk says
// that it has enough of both.
func TestMetricsOfACallWithoutRoom(t *testing.T) {
	for reason, freeInodes := range map[string]uint64{"bytes": 900, "inodes": 200} {
		synctest.Test(t, func(t *testing.T) {
			h := newTestNode(t)
			h.disk.free, h.disk.inodes, h.disk.freeInodes = 500, 1000, freeInodes
			h.retained("pod", "csi-old", time.Hour, testLifespan)
			h.start()
			h.noRoomToPublish()
			wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrNoSpace)
			h.records.fail(nil)
			time.Sleep(time.Minute)
			h.wantMetrics("room was made", nil, metricstest.Values{
				fmt.Sprintf(`katbox_evictions_total{reason=%q}`, reason): 1, `katbox_erased_volumes_total`: 1, `katbox_pressure_ratio`: 1,
			})
			h.stop()
		})
	}
}

func TestMetricsOfADiskThatCannotBeMeasured(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.disk.set(1, unix.EIO)
		time.Sleep(6*testInterval + time.Second)
		failures := metricstest.Of(t, h.metrics)["katbox_filesystem_errors_total"]
		if failures != 6 {
			t.Errorf("%v failures in six intervals", failures)
		}
		h.wantMetrics("unmeasured", nil, metricstest.Values{`katbox_pressure_ratio`: 1, `katbox_filesystem_free_bytes`: 1000})
	})
}

// TestMetricsOfFailedPublishes: nothing is left, there as here.
func TestMetricsOfFailedPublishes(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.mounter.fail(always(unix.EIO), nil)
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrFailed)
		h.wantMetrics("undone", nil, nil)
		h.records.fail(func([]volume.Change) error { return unix.EIO })
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrFailed)
		h.wantMetrics("not recorded", nil, metricstest.Values{"katbox_store_commit_errors_total": 1})
		h.records.fail(nil)
		h.retainedNow()
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrFailed)
		h.wantMetrics("retained again", counted{volume.Retained: 1}, nil)
	})
}

// TestMetricsOfADeletionWithoutData: a publish fails, and so does the end of its record. Its
// unpublish retains a volume without a data directory, whose deletion erases nothing.
func TestMetricsOfADeletionWithoutData(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.mounter.fail(always(unix.EIO), nil)
		h.records.fail(func(changes []volume.Change) error {
			if changes[0].Record == nil {
				return unix.EIO
			}
			return nil
		})
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrUncertain)
		h.records.fail(nil)
		h.unpublish()
		h.wantMetrics("retained", counted{volume.Retained: 1}, nil)
		time.Sleep(testLifespan)
		h.wantMetrics("expired", nil, metricstest.Values{`katbox_evictions_total{reason="expired"}`: 1, `katbox_erased_volumes_total`: 0})
	})
}

// retainedNow publishes and unpublishes, whatever the mounter is told to do else.
func (h *testNode) retainedNow() {
	h.t.Helper()
	h.mounter.mu.Lock()
	onMount := h.mounter.onMount
	h.mounter.onMount = nil
	h.mounter.mu.Unlock()
	h.publish()
	h.unpublish()
	h.mounter.fail(onMount, nil)
}

// TestMetricsOfAStart: what an earlier run left is counted once, and what is carried on with, as it
// changes.
func TestMetricsOfAStart(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		leaving := h.publication()
		leaving.ID, leaving.Target.Path = "csi-leaving", h.target(testPod, "leaving")
		if err := h.node.Publish(t.Context(), leaving); err != nil {
			t.Fatal(err)
		}
		h.mounter.fail(nil, always(unix.EBUSY))
		wantError(t, h.node.Unpublish(t.Context(), leaving.ID, leaving.Target.Path), volume.ErrBusy)
		h.retained("pod", "csi-retained", time.Hour, testLifespan)
		h.retained("pod", "csi-deleting", time.Hour, testLifespan)
		deleting, _ := h.records.get("csi-deleting")
		deleting.Phase = volume.Deleting
		h.records.put(deleting)
		if _, err := h.scratch.Create(volume.Place{Pod: gonePod, ID: numbered(1)}); err != nil {
			t.Fatal(err)
		}

		h.restart()
		h.wantMetrics("after a restart", counted{volume.Published: 1, volume.Unpublishing: 1, volume.Retained: 2}, metricstest.Values{
			`katbox_mounts`: 2, `katbox_stuck_volumes{phase="Unpublishing"}`: 1, `katbox_unmount_retries_total`: 1,
			`katbox_evictions_total{reason="interrupted"}`: 1, `katbox_deadline_lateness_seconds_count`: 0,
		})
		h.mounter.fail(nil, nil)
		time.Sleep(time.Minute)
		h.wantMetrics("the unmount went on", counted{volume.Published: 1, volume.Retained: 3}, metricstest.Values{
			`katbox_mounts`: 1, `katbox_stuck_volumes{phase="Unpublishing"}`: 0,
		})
		h.restart()
		h.wantMetrics("after another one", counted{volume.Published: 1, volume.Retained: 3}, metricstest.Values{`katbox_mounts`: 1})
	})
}

// TestMetricsAfterAReboot: a volume whose mount is gone is about to be mounted again, and its pod
// may be gone as well.
func TestMetricsAfterAReboot(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.mounter.forgetMounts()
		h.restart()
		synctest.Wait()
		metricstest.Of(t, h.metrics).Want(t, "after a reboot", metricstest.Values{`katbox_volumes{phase="Published"}`: 1, `katbox_mounts`: 1})
		h.publish()
		h.wantMetrics("published again", counted{volume.Published: 1}, metricstest.Values{`katbox_mounts`: 1})
		h.mounter.forgetMounts()
		h.removePod(testPod)
		time.Sleep(2 * testGrace)
		h.wantMetrics("its pod is gone", counted{volume.Retained: 1}, metricstest.Values{`katbox_mounts`: 0, `katbox_pods_directory_entries`: 1})
	})
}

func TestMetricsOfTheTrash(t *testing.T) {
	b := &fakeTrash{}
	withDisk(t, 1, b, func(t *testing.T, w diskTest) {
		want := func(when string, values metricstest.Values) {
			t.Helper()
			synctest.Wait()
			metricstest.Of(t, w.metrics).Want(t, when, values)
		}
		b.slow = time.Minute
		b.set(nil, "a", "b", "c")
		w.erase("a", "b", "c", "a")
		want("erasing", metricstest.Values{"katbox_trash_entries": 3, "katbox_erased_volumes_total": 0})
		time.Sleep(90 * time.Second)
		want("one is erased", metricstest.Values{"katbox_trash_entries": 2, "katbox_erased_volumes_total": 1})
		time.Sleep(3 * time.Minute)
		want("all are erased", metricstest.Values{"katbox_trash_entries": 0, "katbox_erased_volumes_total": 3})

		b.slow = 0
		b.set(errors.New("something is mounted inside"), "x", "y")
		w.erase("x", "y")
		time.Sleep(time.Hour)
		want("set aside", metricstest.Values{"katbox_trash_entries": 0, "katbox_trash_set_aside_entries": 2, "katbox_erased_volumes_total": 3})
		b.set(nil, "y") // somebody else took x away
		time.Sleep(time.Hour)
		want("cleared", metricstest.Values{"katbox_trash_entries": 0, "katbox_trash_set_aside_entries": 0, "katbox_erased_volumes_total": 4})
		if left := b.left(); left != 0 {
			t.Errorf("%d entries left", left)
		}
	})
}
