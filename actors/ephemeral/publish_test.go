package ephemeral

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
)

func TestPublishMountsAndRepeats(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.publish()
		if h.mounter.done != 1 {
			t.Errorf("mounted %d times, want once", h.mounter.done)
		}
		info, err := os.Stat(h.data(testPod, testID))
		if err != nil || info.Mode().Perm() != 0o777 {
			t.Errorf("data directory: %v, %v, want mode 0777 as an emptyDir's", info, err)
		}
		record := h.wantPhase(testID, volume.Publishing)
		if record.Namespace != "default" || record.PodName != "batch-1" || record.VolumeName != "scratch" || record.ServiceAccount != "robot" ||
			record.Published.IsZero() || len(record.Targets) != 1 {
			t.Errorf("record %+v", record)
		}
		if h.records.commits != 1 {
			t.Errorf("%d commits, want 1: a repeated call changes nothing", h.records.commits)
		}
	})
}

func TestPublishRefusesContradictions(t *testing.T) {
	readOnly := func(p *volume.Publication, _ *testNode) { p.Target.ReadOnly = true }
	otherPod := func(p *volume.Publication, h *testNode) {
		p.Pod = "other"
		p.Target.Path = h.target(testPod, "elsewhere")
	}
	otherTarget := func(p *volume.Publication, h *testNode) { p.Target.Path = h.target(testPod, "elsewhere") }
	for name, tt := range map[string]struct {
		change func(*volume.Publication, *testNode)
		want   error
	}{
		"read-only where it is writable": {readOnly, volume.ErrConflict},
		"another pod":                    {otherPod, volume.ErrConflict},
		"a second target":                {otherTarget, volume.ErrOtherTarget},
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.publish()
				h.writeMarker(testPod, testID)
				p := h.publication()
				tt.change(&p, h)
				wantError(t, h.node.Publish(t.Context(), p), tt.want)
				h.wantMarker("after a refused publish")
				if len(h.mounter.mounts()) != 1 {
					t.Errorf("mounts: %v", h.mounter.mounts())
				}
			})
		})
	}
}

func TestPublishAtSecondTarget(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		first := h.publication()
		first.Target.MultiWriter = true
		second := first
		second.Target.Path = h.target(testPod, "second")
		for _, p := range []volume.Publication{first, second} {
			if err := h.node.Publish(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		h.writeMarker(testPod, testID)
		h.unpublish()
		time.Sleep(2 * testLifespan)
		h.wantMarker("while the second target is mounted")
		if err := h.node.Unpublish(t.Context(), testID, second.Target.Path); err != nil {
			t.Fatal(err)
		}
		h.wantPhase(testID, volume.Retained)
		time.Sleep(testLifespan)
		h.wantGone(testPod, testID)
	})
}

func TestFailedPublishLeavesNothing(t *testing.T) {
	broken := errors.New("no such device")
	for name, tt := range map[string]struct {
		cause, want error
	}{
		"mount fails":     {broken, volume.ErrFailed},
		"too many mounts": {unix.ENOSPC, volume.ErrFailed},
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.mounter.fail(always(tt.cause), nil)
				wantError(t, h.node.Publish(t.Context(), h.publication()), tt.want)
				h.wantGone(testPod, testID)
				if _, err := os.Lstat(h.target(testPod, "mount")); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("target is still there (%v)", err)
				}
				h.mounter.fail(nil, nil)
				h.publish() // the kubelet tries again
			})
		})
	}
}

func TestPublishFailsWhenThePodIsGone(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.removePod(testPod)
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrFailed)
		h.wantGone(testPod, testID)
	})
}

func TestFailedPublishKeepsRetainedData(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		h.unpublish()
		before := h.wantPhase(testID, volume.Retained)
		time.Sleep(time.Hour)
		h.mounter.fail(always(unix.EIO), nil)
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrFailed)
		after := h.wantPhase(testID, volume.Retained)
		if !after.Unpublished.Equal(before.Unpublished) {
			t.Errorf("retained since %v, want still %v", after.Unpublished, before.Unpublished)
		}
		h.wantMarker("after a failed publish")
		time.Sleep(testLifespan - time.Hour)
		h.wantGone(testPod, testID)
	})
}

func TestPublishThatCannotBeUndoneIsUncertainAndCleansItselfUp(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		mounted := false
		h.mounter.fail(func(target string) error {
			// The bind is made, and then the remount to read-only fails.
			mounted = true
			return errors.Join(unix.EPERM, h.mounter.FakeMounter.Mount(h.data(testPod, testID), target, "", []string{"bind"}))
		}, always(unix.EBUSY))
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrUncertain)
		if !mounted {
			t.Fatal("the fault was not reached")
		}
		h.wantPhase(testID, volume.Unpublishing)
		h.mounter.fail(nil, nil)
		time.Sleep(time.Minute)
		h.wantPhase(testID, volume.Retained)
		if left := h.mounter.mounts(); len(left) != 0 {
			t.Errorf("still mounted: %v", left)
		}
	})
}

func TestPublishIsNotAcknowledgedWithoutItsRecord(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.records.fail(func([]volume.Change) error { return unix.EIO })
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrFailed)
		h.records.fail(func([]volume.Change) error { return unix.ENOSPC })
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrNoSpace)
		if h.mounter.done != 0 {
			t.Error("mounted without a record")
		}
		h.records.fail(nil)
		h.wantGone(testPod, testID)
	})
}

func TestSameCallSharesTheOutcomeAndAnotherIsRefused(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		release := make(chan struct{})
		h.mounter.fail(func(string) error { <-release; return nil }, nil)
		var wg sync.WaitGroup
		errs := make(chan error, 3)
		for range 3 {
			wg.Go(func() { errs <- h.node.Publish(t.Context(), h.publication()) })
		}
		synctest.Wait()
		wantError(t, h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")), volume.ErrBusy)

		// Another volume does not wait for this one.
		h.makePod("other")
		p := h.publication()
		p.ID, p.Pod, p.Target.Path = "csi-other", "other", h.target("other", "mount")
		h.mounter.fail(nil, nil)
		if err := h.node.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}

		close(release)
		wg.Wait()
		for range 3 {
			if err := <-errs; err != nil {
				t.Errorf("doubled publish: %v", err)
			}
		}
		if h.mounter.done != 2 {
			t.Errorf("mounted %d times, want 2: once for each volume", h.mounter.done)
		}
	})
}

// TestRefusedPublishNeedsNoOperation: it is answered at once with its own reason, also where no operation can begin, so
// that no two of them share an answer.
func TestRefusedPublishNeedsNoOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.threads = 2 // half of them are for operations
		h.start()
		release, first := make(chan struct{}), make(chan error, 1)
		h.mounter.fail(func(string) error { <-release; return nil }, nil)
		go func() { first <- h.node.Publish(t.Context(), h.publication()) }()
		synctest.Wait()
		for _, reason := range []string{"one reason", "another reason"} {
			p := h.publication()
			p.ID, p.Refused = "csi-other", volume.Invalid("volume_context", reason)
			err := h.node.Publish(t.Context(), p)
			wantError(t, err, volume.ErrInvalid)
			if !strings.Contains(err.Error(), reason) {
				t.Errorf("%v, want %s", err, reason)
			}
		}
		close(release)
		if err := <-first; err != nil {
			t.Error(err)
		}
		h.stop()
	})
}

// TestPublishWithOtherAttributesSharesNothing: an answer to other attributes is no answer to these.
func TestPublishWithOtherAttributesSharesNothing(t *testing.T) {
	for name, change := range map[string]func(*volume.Publication){
		"other terms": func(p *volume.Publication) { p.Terms.Lifespan = time.Hour },
		"refused terms": func(p *volume.Publication) {
			p.Refused = volume.Invalid("volume_context", "has a key that is not known")
		},
		"attach": func(p *volume.Publication) { p.Attach = volume.Place{Pod: "another", ID: "csi-another"} },
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				release := make(chan struct{})
				h.mounter.fail(func(string) error { <-release; return nil }, nil)
				first := make(chan error, 1)
				go func() { first <- h.node.Publish(t.Context(), h.publication()) }()
				synctest.Wait()
				p := h.publication()
				change(&p)
				other := make(chan error, 1)
				go func() { other <- h.node.Publish(t.Context(), p) }()
				synctest.Wait()
				close(release)
				wantError(t, <-other, volume.ErrBusy)
				if err := <-first; err != nil {
					t.Errorf("the publish that came first: %v", err)
				}
			})
		})
	}
}

func TestCancelledPublishGoesOnAndItsRepeatSucceeds(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		release := make(chan struct{})
		h.mounter.fail(func(string) error { <-release; return nil }, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantError(t, h.node.Publish(ctx, h.publication()), context.DeadlineExceeded)
		close(release)
		synctest.Wait()
		h.publish()
		if h.mounter.done != 1 {
			t.Errorf("mounted %d times, want once", h.mounter.done)
		}
	})
}

// TestInterruptedReadOnlyPublishIsCompleted: a crash after the bind and before its flags leaves a
// writable mount where a read-only one was asked for.
func TestInterruptedReadOnlyPublishIsCompleted(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		p := h.publication()
		p.Target.ReadOnly = true
		if err := h.node.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(h.mounter.FakeMounter.Unmount(p.Target.Path),
			h.mounter.FakeMounter.Mount(h.data(testPod, testID), p.Target.Path, "", []string{"bind"})); err != nil {
			t.Fatal(err)
		}
		h.restart()
		if err := h.node.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if readOnly, err := h.mounter.ReadOnly(p.Target.Path); err != nil || !readOnly {
			t.Errorf("read-only: %t, %v, want true", readOnly, err)
		}
	})
}

// TestRepublishOfALeavingTargetWithoutARecord: while something is mounted, no answer says that
// nothing is.
func TestRepublishOfALeavingTargetWithoutARecord(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.mounter.fail(nil, always(unix.EBUSY))
		wantError(t, h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")), volume.ErrBusy)
		for _, cause := range []error{unix.EIO, unix.ENOSPC} {
			h.records.fail(func([]volume.Change) error { return cause })
			wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrUncertain)
		}
		h.records.fail(nil)
		h.publish()
		h.mounter.fail(nil, nil)
	})
}

func TestTargetMountedByAnotherIsLeftAlone(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		foreign := h.target(testPod, "mount")
		if err := os.Mkdir(foreign, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := h.mounter.FakeMounter.Mount("/dev/foreign", foreign, "ext4", nil); err != nil {
			t.Fatal(err)
		}
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrForeignMount)
		wantError(t, h.node.Unpublish(t.Context(), testID, foreign), volume.ErrForeignMount)
		if left := h.mounter.mounts(); len(left) != 1 {
			t.Errorf("mounts: %v, want the foreign one", left)
		}
		h.wantGone(testPod, testID)
	})
}
