package ephemeral

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
)

func TestUnpublishedVolumeLivesForItsLifespan(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		time.Sleep(3 * testLifespan)
		h.wantMarker("published for longer than a lifespan")
		h.unpublish()
		h.unpublish()
		if _, err := os.Lstat(h.target(testPod, "mount")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("target is still there (%v)", err)
		}
		h.wantPhase(testID, volume.Retained)
		time.Sleep(testLifespan - time.Second)
		h.wantMarker("a second before its deadline")
		time.Sleep(time.Second)
		h.wantGone(testPod, testID)
		if _, err := os.Lstat(h.data(testPod, "")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the pod's empty directory is still there (%v)", err)
		}
	})
}

func TestPublishWithinTheLifespanBringsTheDataBack(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		h.unpublish()
		time.Sleep(testLifespan - time.Minute)
		h.publish()
		h.wantMarker("published again")
		time.Sleep(2 * testLifespan)
		h.wantMarker("published again, past the old deadline")
		h.unpublish()
		time.Sleep(testLifespan - time.Second)
		h.wantMarker("a second before the new deadline")
		time.Sleep(time.Second)
		h.wantGone(testPod, testID)
	})
}

func TestBusyTargetIsUnmountedWithoutAnotherCall(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		h.mounter.fail(nil, always(unix.EBUSY))
		err := h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount"))
		wantError(t, err, volume.ErrBusy)
		wantError(t, err, unix.EBUSY)
		time.Sleep(3 * testLifespan)
		h.wantMarker("while the target is busy")
		h.wantPhase(testID, volume.Unpublishing)

		h.mounter.fail(nil, nil)
		time.Sleep(actors.StuckBackoff.Longest)
		h.wantPhase(testID, volume.Retained)
		if left := h.mounter.mounts(); len(left) != 0 {
			t.Errorf("still mounted: %v", left)
		}
		h.wantMarker("just retained")
		time.Sleep(testLifespan)
		h.wantGone(testPod, testID)
	})
}

func TestBusyTargetIsUnmountedAfterARestart(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.mounter.fail(nil, always(unix.EBUSY))
		wantError(t, h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")), volume.ErrBusy)
		h.restart()
		h.wantPhase(testID, volume.Unpublishing)
		h.mounter.fail(nil, nil)
		time.Sleep(actors.StuckBackoff.Longest)
		h.wantPhase(testID, volume.Retained)
	})
}

func TestPublishTakesABusyUnpublishBack(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.mounter.fail(nil, always(unix.EBUSY))
		wantError(t, h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")), volume.ErrBusy)
		h.publish()
		h.mounter.fail(nil, nil)
		time.Sleep(time.Hour)
		if len(h.mounter.mounts()) != 1 {
			t.Error("unmounted though it was published again")
		}
	})
}

// TestUnpublishOfAMountBeginsTheLifespan, whatever was known: a pod has used the volume until now.
func TestUnpublishOfAMountBeginsTheLifespan(t *testing.T) {
	for name, age := range map[string]time.Duration{"within the old lifespan": time.Hour, "past it": 2 * testLifespan} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				h.retained(testPod, testID, time.Minute, testLifespan)
				h.start()
				target := h.target(testPod, "mount")
				if err := errors.Join(os.MkdirAll(target, 0o750), h.mounter.FakeMounter.Mount(h.data(testPod, testID), target, "", nil)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(age)
				h.wantMarker("mounted")
				for range 2 { // the second has nothing to unmount, and is no new beginning
					h.unpublish()
					time.Sleep(testLifespan/2 - time.Second)
				}
				h.wantMarker("just before its new deadline")
				time.Sleep(2 * time.Second)
				h.wantGone(testPod, testID)
				h.stop()
			})
		})
	}
}

func TestUnpublishOfAnUnknownVolume(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		if err := h.node.Unpublish(t.Context(), "csi-never-seen", h.target(testPod, "mount")); err != nil {
			t.Error(err)
		}
		h.wantGone(testPod, "csi-never-seen")
	})
}

func TestUnpublishOfAnotherVolumesTargetIsRefused(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		wantError(t, h.node.Unpublish(t.Context(), "csi-other", h.target(testPod, "mount")), volume.ErrForeignMount)
		if len(h.mounter.mounts()) != 1 {
			t.Error("another volume's mount was taken away")
		}
	})
}

func TestUnpublishIsNotAcknowledgedWithoutItsRecord(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		h.records.fail(func([]volume.Change) error { return unix.EIO })
		err := h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount"))
		wantError(t, err, volume.ErrUnfinished)
		if errors.Is(err, volume.ErrUncertain) {
			t.Errorf("%q says that the state of the mount is not known", err)
		}
		time.Sleep(3 * testLifespan)
		synctest.Wait() // the sleep may end with a repeated attempt
		h.wantMarker("retained without a record")
		h.records.fail(nil)
		h.unpublish()
		h.wantPhase(testID, volume.Retained)
	})
}

func TestStats(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		target := h.target(testPod, "mount")
		_, err := h.node.Stats(t.Context(), testID, target)
		wantError(t, err, volume.ErrNotFound)
		h.publish()
		h.writeMarker(testPod, testID)
		_, err = h.node.Stats(t.Context(), testID, "some/path")
		wantError(t, err, volume.ErrNotFound)
		stats, err := h.node.Stats(t.Context(), testID, target)
		if err != nil || stats.Used.Inodes != 2 || stats.Used.Bytes == 0 {
			t.Errorf("stats %+v, %v, want two inodes and some bytes", stats, err)
		}
		h.unpublish()
		_, err = h.node.Stats(t.Context(), testID, target)
		wantError(t, err, volume.ErrNotFound)
	})
}

// TestMountOutOfSight: a target that is not there does not prove that the volume is not mounted.
// Its directory may have been renamed or covered.
func TestMountOutOfSight(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		if err := os.Rename(filepath.Join(h.podsDir(), string(testPod)), filepath.Join(h.root, "moved")); err != nil {
			t.Fatal(err)
		}
		h.makePod(testPod)
		wantError(t, h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")), volume.ErrUncertain)
		h.removePod(testPod)
		time.Sleep(3 * testLifespan)
		h.wantMarker("mounted out of sight, its pod directory gone")
		h.mounter.forgetMounts()
		time.Sleep(2 * testLifespan)
		h.wantGone(testPod, testID)
	})
}

func TestUnpublishTakesNobodyElsesMount(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		target := h.target(testPod, "mount")
		h.publish()
		if err := h.mounter.FakeMounter.Unmount(target); err != nil {
			t.Fatal(err)
		}
		other := h.publication()
		other.ID = "csi-other"
		if err := h.node.Publish(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		wantError(t, h.node.Unpublish(t.Context(), testID, target), volume.ErrForeignMount)
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrForeignMount)
		time.Sleep(time.Hour)
		if len(h.mounter.mounts()) != 1 {
			t.Error("another volume's mount was taken away")
		}
		if err := h.node.Unpublish(t.Context(), other.ID, target); err != nil {
			t.Fatal(err)
		}
		time.Sleep(actors.StuckBackoff.Longest)
		h.wantPhase(testID, volume.Retained)
	})
}

// TestUnpublishRemovesNoFile: only what a publish makes is removed.
func TestUnpublishRemovesNoFile(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		file := h.target(testPod, "etc-hosts")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := h.node.Unpublish(t.Context(), "csi-never-seen", file); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(file); err != nil {
			t.Error(err)
		}
	})
}

func TestUnpublishSharesARetry(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.mounter.fail(nil, always(unix.EBUSY))
		wantError(t, h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")), volume.ErrBusy)
		release := make(chan struct{})
		h.mounter.fail(nil, func(string) error { <-release; return nil })
		time.Sleep(actors.StuckBackoff.Longest) // the retry runs
		answered := make(chan error, 1)
		go func() {
			answered <- h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount"))
		}()
		synctest.Wait()
		close(release)
		if err := <-answered; err != nil {
			t.Errorf("unpublish beside its own retry: %v", err)
		}
	})
}

// TestUnpublishMeetsADeletion: under disk pressure a volume is deleted as soon as it is
// unpublished, and a kubelet repeats its calls at will. There is nothing left to unmount, so
// nothing to refuse.
func TestUnpublishMeetsADeletion(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.unpublish()
		deleting, goOn := make(chan struct{}), make(chan struct{})
		h.records.fail(func(changes []volume.Change) error {
			if changes[0].Record != nil && changes[0].Record.Phase == volume.Deleting {
				close(deleting)
				<-goOn
			}
			return nil
		})
		<-deleting
		answers := make(chan error, 2)
		for range 2 {
			go func() { answers <- h.node.Unpublish(withTimeout(t, time.Minute), testID, h.target(testPod, "mount")) }()
		}
		synctest.Wait()
		select {
		case err := <-answers:
			t.Errorf("answered in the middle of the deletion: %v", err)
		default:
		}
		wantError(t, h.node.Publish(withTimeout(t, time.Minute), h.publication()), volume.ErrBusy)
		close(goOn)
		for range 2 {
			if err := <-answers; err != nil {
				t.Errorf("unpublish: %v", err)
			}
		}
		h.wantGone(testPod, testID)
	})
}

// TestBusyNamesWhatIsMountedInside: a volume with a mount inside is as busy for the kernel as one with an open file. The
// error says which it is.
func TestBusyNamesWhatIsMountedInside(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.mounter.fail(nil, always(unix.EBUSY))
		err := h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount"))
		wantError(t, err, volume.ErrBusy)
		if !strings.Contains(err.Error(), "a process still uses") {
			t.Errorf("with an open file: %v", err)
		}
		inside := h.target(testPod, "mount") + "/cache"
		if err := h.mounter.FakeMounter.Mount("tmpfs", inside, "tmpfs", nil); err != nil {
			t.Fatal(err)
		}
		if err := h.mounter.FakeMounter.Mount("tmpfs", h.target(testPod, "mount")+"-of-another", "tmpfs", nil); err != nil {
			t.Fatal(err)
		}
		err = h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount"))
		wantError(t, err, volume.ErrBusy)
		if !strings.Contains(err.Error(), inside+" is mounted inside") || strings.Contains(err.Error(), "a process") {
			t.Errorf("with a mount inside: %v", err)
		}
		if err := h.mounter.FakeMounter.Unmount(inside); err != nil {
			t.Fatal(err)
		}
		if err := h.mounter.FakeMounter.Unmount(h.target(testPod, "mount") + "-of-another"); err != nil {
			t.Fatal(err)
		}
		h.mounter.fail(nil, nil)
		h.unpublish()
	})
}
