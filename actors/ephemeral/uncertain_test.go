package ephemeral

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
)

// bindElsewhere mounts a volume's data directory where no record says so.
func (h *testNode) bindElsewhere(pod volume.PodUID, id volume.ID) {
	h.t.Helper()
	if err := h.mounter.FakeMounter.Mount(h.data(pod, id), "/mnt/elsewhere", "", []string{"bind"}); err != nil {
		h.t.Fatal(err)
	}
}

// TestMountedElsewhereIsNeverDeleted: whatever led to it, what the mount table shows as mounted is
// not deleted.
func TestMountedElsewhereIsNeverDeleted(t *testing.T) {
	for name, prepare := range map[string]func(h *testNode){
		"retained": func(h *testNode) { h.retained(gonePod, testID, 0, testLifespan) },
		"orphan":   func(h *testNode) { h.orphan(gonePod, testID) },
		"imported, no pod": func(h *testNode) {
			h.orphan(gonePod, testID)
			h.records.put(volume.Record{ID: testID, Pod: gonePod, Phase: volume.Published})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				prepare(h)
				h.bindElsewhere(gonePod, testID)
				h.start()
				h.disk.set(0, nil)
				time.Sleep(time.Hour) // measured each second
				h.disk.set(1000, nil)
				time.Sleep(3 * testLifespan)
				if !h.hasMarker(gonePod, testID) {
					t.Fatal("deleted while it was mounted")
				}
				h.mounter.forgetMounts()
				time.Sleep(2 * testLifespan)
				h.wantGone(gonePod, testID)
				h.stop()
			})
		})
	}
}

// orphan puts a data directory on disk that nothing knows.
func (h *testNode) orphan(pod volume.PodUID, id volume.ID) {
	h.t.Helper()
	if _, err := h.scratch.Create(volume.Place{Pod: pod, ID: id}); err != nil {
		h.t.Fatal(err)
	}
	h.writeMarker(pod, id)
}

// TestResumeThatMeetsAnOperationIsNotLost: the volume goes on with what it was in the middle of
// once a slow call that was refused is over.
func TestResumeThatMeetsAnOperationIsNotLost(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.unpublish()
		time.Sleep(testLifespan - time.Second)
		h.bindElsewhere(testPod, testID)
		time.Sleep(2 * time.Second)
		h.mounter.fail(func(string) error { time.Sleep(time.Minute); return unix.EIO }, nil)
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrFailed)
		h.mounter.fail(nil, nil)
		h.mounter.forgetMounts()
		time.Sleep(time.Hour)
		h.wantGone(testPod, testID)
	})
}

func TestBusyTargetDoesNotHoldUpTheOther(t *testing.T) {
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
		h.mounter.fail(nil, always(unix.EBUSY))
		for _, p := range []volume.Publication{first, second} {
			wantError(t, h.node.Unpublish(t.Context(), testID, p.Target.Path), volume.ErrBusy)
		}
		h.mounter.fail(nil, func(target string) error {
			if target == first.Target.Path {
				return unix.EBUSY
			}
			return nil
		})
		time.Sleep(time.Minute)
		if record := h.wantPhase(testID, volume.Unpublishing); len(record.Targets) != 1 || record.Targets[0].Path != first.Target.Path {
			t.Errorf("targets %+v, want the busy one alone", record.Targets)
		}
		h.mounter.fail(nil, nil)
		time.Sleep(time.Minute)
		h.wantPhase(testID, volume.Retained)
	})
}

// hangingQuotas are those of a file system that does not answer about one directory, once it is to hang.
type hangingQuotas struct {
	*fakeQuotas
	dir   string
	hangs atomic.Bool
	until chan struct{}
}

func (q *hangingQuotas) Project(fd int) (uint32, error) {
	if path, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd)); err == nil && q.hangs.Load() && strings.HasSuffix(path, q.dir) {
		<-q.until
	}
	return q.fakeQuotas.Project(fd)
}

func TestHungVolumeUsesUpNobodysWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		hanging := &hangingQuotas{fakeQuotas: newFakeQuotas(), dir: string(testID), until: make(chan struct{})}
		h.quotas = hanging
		h.start()
		h.publishLimited()
		hanging.hangs.Store(true)
		for range actors.MaxWorkers + 1 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := h.node.Stats(ctx, testID, h.target(testPod, "mount")); err == nil {
				t.Error("stats of a volume that hangs")
			}
			cancel()
		}
		other := h.publication()
		other.ID, other.Target.Path = "csi-other", h.target(testPod, "other")
		if err := h.node.Publish(t.Context(), other); err != nil {
			t.Errorf("another volume: %v", err)
		}
		close(hanging.until)
		h.stop()
	})
}

// TestHungMountDelaysNobody: while the kernel does not come back from one volume's mount, others
// live their whole life.
func TestHungMountDelaysNobody(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		hung := make(chan struct{})
		h.mounter.fail(func(target string) error {
			if target == h.target(testPod, "mount") {
				<-hung
			}
			return nil
		}, nil)
		answered := make(chan error, 1)
		go func() { answered <- h.node.Publish(t.Context(), h.publication()) }()
		synctest.Wait()
		began := time.Now()
		other := h.publication()
		other.ID, other.Target.Path = "csi-other", h.target(testPod, "other")
		if err := h.node.Publish(t.Context(), other); err != nil {
			t.Errorf("publish of another volume: %v", err)
		}
		if err := h.node.Unpublish(t.Context(), other.ID, other.Target.Path); err != nil {
			t.Errorf("unpublish of another volume: %v", err)
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the other volume waited for %v", waited)
		}
		time.Sleep(testLifespan)
		h.wantGone(testPod, other.ID)
		close(hung)
		if err := <-answered; err != nil {
			t.Errorf("the one that hung: %v", err)
		}
	})
}

// TestVolumesOfAnEarlierKubeletDirectory: after a reboot their mounts are gone, and so are their
// pods unless this kubelet has them.
func TestVolumesOfAnEarlierKubeletDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		before := func(pod volume.PodUID) volume.Target {
			return volume.Target{Path: "/var/lib/kubelet/pods/" + string(pod) + "/volumes/kubernetes.io~csi/v/mount"}
		}
		h.orphan(gonePod, numbered(1))
		h.records.put(volume.Record{ID: numbered(1), Pod: gonePod, Phase: volume.Publishing, Targets: []volume.Target{before(gonePod)}})
		h.orphan(testPod, numbered(2))
		h.records.put(volume.Record{ID: numbered(2), Pod: testPod, Phase: volume.Publishing, Targets: []volume.Target{before(testPod)}})
		h.rebooted = true
		h.start()
		h.rebooted = false
		h.restart()
		time.Sleep(2 * testGrace)
		h.wantPhase(numbered(1), volume.Retained)
		time.Sleep(testLifespan)
		h.wantGone(gonePod, numbered(1))
		if record := h.wantPhase(numbered(2), volume.Published); len(record.Targets) != 0 {
			t.Errorf("%+v, want no target until the kubelet publishes it", record)
		}
		publication := h.publication()
		publication.ID = numbered(2)
		if err := h.node.Publish(t.Context(), publication); err != nil {
			t.Fatal(err)
		}
		if record := h.wantPhase(numbered(2), volume.Publishing); len(record.Targets) != 1 || !h.hasMarker(testPod, numbered(2)) {
			t.Errorf("%+v, want its new target and its data", record)
		}
		h.stop()
	})
}

// TestOtherKubeletDirectoryConcludesNothing: the daemon was started with a directory that is not
// the kubelet's; the volumes' targets are elsewhere.
func TestOtherKubeletDirectoryConcludesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.orphan("running", testID)
		h.records.put(volume.Record{ID: testID, Pod: "running", Phase: volume.Publishing,
			Targets: []volume.Target{{Path: "/var/lib/kubelet/pods/running/volumes/kubernetes.io~csi/v/mount"}}})
		h.start()
		time.Sleep(2 * testLifespan)
		h.wantPhase(testID, volume.Publishing)
		if _, err := os.Stat(h.data("running", testID)); err != nil {
			t.Error(err)
		}
		h.stop()
	})
}
