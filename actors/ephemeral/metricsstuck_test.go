package ephemeral

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/messages"
)

// TestMetricsOfAHungMount: a mount that does not come to an end shows as stuck.
func TestMetricsOfAHungMount(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		release := make(chan struct{})
		h.mounter.fail(func(string) error { <-release; return nil }, nil)
		ended := make(chan error, 1)
		go func() { ended <- h.node.Publish(t.Context(), h.publication()) }()
		synctest.Wait()
		metricstest.Of(t, h.metrics).Want(t, "while it hangs", metricstest.Values{
			`katbox_volumes{phase="Publishing"}`: 1, `katbox_volumes{phase="Published"}`: 0, `katbox_mounts`: 1,
		})
		close(release)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		h.wantMetrics("mounted", counted{volume.Published: 1}, nil)
	})
}

func TestMetricsOfABusyTarget(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		var tries atomic.Int64
		h.mounter.fail(nil, func(string) error { tries.Add(1); return unix.EBUSY })
		wantError(t, h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")), volume.ErrBusy)
		time.Sleep(time.Minute)
		h.wantMetrics("busy", counted{volume.Unpublishing: 1}, metricstest.Values{
			`katbox_stuck_volumes{phase="Unpublishing"}`: 1, `katbox_mounts`: 1, `katbox_unmount_retries_total`: float64(tries.Load() - 1),
		})
		h.mounter.fail(nil, nil)
		time.Sleep(actors.StuckBackoff.Longest)
		h.wantMetrics("no longer", counted{volume.Retained: 1}, metricstest.Values{
			`katbox_stuck_volumes{phase="Unpublishing"}`: 0, `katbox_mounts`: 0, `katbox_unmount_retries_total`: float64(tries.Load()),
		})
	})
}

// TestMetricsOfATargetThatStays: the kubelet's repeat gets the mount off, and nothing but an error
// about the directory is left: the volume is not stuck.
func TestMetricsOfATargetThatStays(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.mounter.fail(nil, always(unix.EBUSY))
		wantError(t, h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")), volume.ErrBusy)
		h.wantMetrics("busy", counted{volume.Unpublishing: 1}, metricstest.Values{`katbox_stuck_volumes{phase="Unpublishing"}`: 1})
		h.mounter.fail(nil, nil)
		if err := os.WriteFile(filepath.Join(h.target(testPod, "mount"), "in the way"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		err := h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount"))
		wantError(t, err, volume.ErrUnfinished)
		if errors.Is(err, volume.ErrUncertain) {
			t.Errorf("%q says that the state of the mount is not known, and only its directory is not empty", err)
		}
		h.wantMetrics("unmounted", counted{volume.Retained: 1}, metricstest.Values{
			`katbox_stuck_volumes{phase="Unpublishing"}`: 0, `katbox_stuck_volumes{phase="Retained"}`: 0,
		})
	})
}

func TestMetricsOfPanics(t *testing.T) {
	atEachFailure(t, func(t *testing.T, h *testNode, _ *atomic.Bool) {
		_ = h.node.Publish(withTimeout(t, 2*time.Minute), h.publication())
		time.Sleep(actors.RestartBackoff.Longest)
		if err := h.node.Publish(withTimeout(t, 2*time.Minute), h.publication()); err != nil {
			t.Fatal(err)
		}
		h.wantMetrics("restarted", counted{volume.Published: 1}, metricstest.Values{`katbox_actor_restarts_total`: 1, `katbox_parked_volumes`: 0})
		h.unpublish()
		h.wantMetrics("retained", counted{volume.Retained: 1}, nil)
		h.publish()
		h.wantMetrics("published again", counted{volume.Published: 1}, nil)
	})
}

func TestMetricsOfAParkedActor(t *testing.T) {
	var broken atomic.Bool
	fails := func(m any) bool {
		switch m.(type) {
		case *messages.UnpublishVolume, *messages.Resume:
			return broken.Load()
		}
		return false
	}
	withFailingNode(t, failingAt(fails), func(t *testing.T, h *testNode) {
		h.publish()
		broken.Store(true)
		wantError(t, h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")), volume.ErrUncertain)
		time.Sleep(30 * time.Second)
		h.wantMetrics("parked", counted{volume.Published: 1}, metricstest.Values{
			`katbox_parked_volumes`: 1, `katbox_actor_restarts_total`: actors.MaxRestarts, `katbox_mounts`: 1,
		})
		broken.Store(false)
		time.Sleep(actors.ParkedBackoff.First)
		h.wantMetrics("given another try", counted{volume.Published: 1}, metricstest.Values{
			`katbox_parked_volumes`: 0, `katbox_actor_restarts_total`: actors.MaxRestarts + 1,
		})
		h.unpublish()
		h.wantMetrics("retained", counted{volume.Retained: 1}, nil)
	})
}
