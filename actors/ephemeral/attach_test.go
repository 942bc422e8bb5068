package ephemeral

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	lookingPod = volume.PodUID("00000000-0000-4000-8000-0000000000a1")
	lookingID  = volume.ID("csi-00000000000000000000000000000000000000000000000000000000000000a1")
)

// attaching is a publish of a volume that has the test's volume attached.
func (h *testNode) attaching() volume.Publication {
	h.makePod(lookingPod)
	return volume.Publication{
		ID: lookingID, Pod: lookingPod, Namespace: "default", PodName: "look", VolumeName: "old",
		Target: volume.Target{Path: h.target(lookingPod, "mount"), ReadOnly: true}, Attach: volume.Place{Pod: testPod, ID: testID},
	}
}

func (h *testNode) attach() {
	h.t.Helper()
	if err := h.node.Publish(h.t.Context(), h.attaching()); err != nil {
		h.t.Fatalf("attach: %v", err)
	}
}

func (h *testNode) detach() {
	h.t.Helper()
	if err := h.node.Unpublish(h.t.Context(), lookingID, h.target(lookingPod, "mount")); err != nil {
		h.t.Fatalf("detach: %v", err)
	}
	synctest.Wait() // until it sleeps: a pod that detaches and attaches before that is not asked about again
}

// leaveBehind retains the test's volume, with a marker.
func (h *testNode) leaveBehind() {
	h.t.Helper()
	h.publish()
	h.writeMarker(testPod, testID)
	synctest.Wait() // the worker that published is free again
	h.unpublish()
	h.removePod(testPod)
	synctest.Wait()
}

func (h *testNode) retainedHere(id volume.ID) bool {
	h.t.Helper()
	page, err := h.node.List(h.t.Context(), volume.Selection{Limit: 100})
	if err != nil {
		h.t.Fatal(err)
	}
	return slices.ContainsFunc(page.Volumes, func(d volume.Description) bool { return d.Record.ID == id })
}

// TestAttach: while a pod has a retained volume attached nothing deletes that, and people list and read
// it as before. Afterwards it is kept for the grace, and nothing else is left.
func TestAttach(t *testing.T) {
	for name, between := range map[string]func(*testNode){
		"": func(*testNode) {}, "restarted": (*testNode).restart,
		"rebooted": func(h *testNode) {
			h.mounter.forgetMounts()
			h.rebooted = true
			h.restart()
			h.rebooted = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.leaveBehind()
				h.attach()
				looking, _ := h.records.get(lookingID)
				h.wantUsage("what shows the data of another volume", looking, volume.Size{})
				mounts := h.mounter.mounts()
				if len(mounts) != 1 || mounts[0].Device != h.data(testPod, testID) || mounts[0].Path != h.target(lookingPod, "mount") ||
					!slices.Equal(mounts[0].Opts, []string{"bind", "nodev", "nosuid", "ro"}) {
					t.Errorf("mounts %+v", mounts)
				}
				between(h)
				h.attach() // the kubelet repeats itself
				if _, err := os.Lstat(h.data(lookingPod, lookingID)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the volume has data of its own: %v", err)
				}
				time.Sleep(2 * testLifespan)
				h.disk.set(0, nil)
				time.Sleep(time.Hour)
				h.wantMarker("attached, expired and under pressure")
				if !h.retainedHere(testID) || h.retainedHere(lookingID) {
					t.Error("the list has not just the volume that is attached")
				}
				reader, err := h.node.Read(t.Context(), testID)
				if err != nil {
					t.Fatal(err)
				}
				reader.Close()
				wantError(t, h.node.Purge(t.Context(), testID, "ann", "a test"), volume.ErrNotRetained)
				h.disk.set(1000, nil)
				h.detach()
				ended := time.Now()
				synctest.Wait()
				if _, ok := h.records.get(lookingID); ok || h.retainedHere(lookingID) {
					t.Error("the volume that looked left a record")
				}
				between(h)
				time.Sleep(testRelease - time.Minute)
				h.wantMarker("in the grace")
				if until := h.wantPhase(testID, volume.Retained).Until(); until.Before(ended.Add(testRelease)) {
					t.Errorf("kept until %v, %v after the end", until, until.Sub(ended))
				}
				// A lifespan has two digits of minutes.
				time.Sleep(time.Until(h.wantPhase(testID, volume.Retained).Until()) + time.Minute)
				h.wantGone(testPod, testID)
			})
		})
	}
}

// TestAttachedAtAStart: several volumes are attached when the node starts, and the deadlines of all are
// over. None goes, also where a reboot took the mounts away and the kubelet has not come back yet.
func TestAttachedAtAStart(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		const sources = 3
		pod := func(i int) volume.PodUID { return volume.PodUID(fmt.Sprintf("left-%d", i)) }
		id := func(i int) volume.ID { return volume.ID(fmt.Sprintf("csi-left-%d", i)) }
		looking := func(i int) volume.Publication {
			p := h.attaching()
			p.ID, p.Pod = volume.ID(fmt.Sprintf("csi-look-%d", i)), volume.PodUID(fmt.Sprintf("look-%d", i))
			h.makePod(p.Pod)
			p.Target.Path, p.Attach = h.target(p.Pod, "mount"), volume.Place{Pod: pod(i), ID: id(i)}
			return p
		}
		for i := range sources {
			h.makePod(pod(i))
			own := h.publication()
			own.ID, own.Pod, own.Target.Path = id(i), pod(i), h.target(pod(i), "mount")
			if err := h.node.Publish(t.Context(), own); err != nil {
				t.Fatal(err)
			}
			h.writeMarker(pod(i), id(i))
			if err := h.node.Unpublish(t.Context(), id(i), own.Target.Path); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // it sleeps, and is measured
			if err := h.node.Publish(t.Context(), looking(i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * testLifespan)
		h.mounter.forgetMounts()
		h.rebooted = true
		h.restart()
		h.rebooted = false
		synctest.Wait()
		for i := range sources {
			if !h.hasMarker(pod(i), id(i)) {
				t.Errorf("volume %d is gone, and a pod has it attached", i)
			}
			if err := h.node.Publish(t.Context(), looking(i)); err != nil {
				t.Errorf("the kubelet publishes volume %d again: %v", i, err)
			}
		}
	})
}

// TestDetachWhileStopping: a pod that had a volume attached ends while the daemon stops. The grace is not
// lost, though no operation can begin any more that records it.
func TestDetachWhileStopping(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.leaveBehind()
		h.attach()
		time.Sleep(2 * testLifespan)
		h.mounter.fail(nil, func(string) error { time.Sleep(time.Second); return nil })
		ended := make(chan error, 1)
		go func() { ended <- h.node.Unpublish(t.Context(), lookingID, h.target(lookingPod, "mount")) }()
		synctest.Wait()
		h.restart()
		wantError(t, <-ended, volume.ErrUnfinished)
		h.mounter.fail(nil, nil)
		h.wantMarker("after the start")
		h.detach()
		time.Sleep(testRelease - time.Minute)
		h.wantMarker("in the grace")
		time.Sleep(time.Until(h.wantPhase(testID, volume.Retained).Until()) + time.Minute)
		h.wantGone(testPod, testID)
	})
}

// TestDetachWithOneWorker: the grace is recorded also where the detach is the only operation that may run, as
// in a container with few threads, or while the file system hangs for all others.
func TestDetachWithOneWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.threads = 2 // half of them are for operations
		h.start()
		h.leaveBehind()
		h.attach()
		time.Sleep(2 * testLifespan)
		synctest.Wait()
		h.detach()
		time.Sleep(testRelease - time.Minute)
		synctest.Wait()
		h.wantMarker("in the grace")
		time.Sleep(time.Until(h.wantPhase(testID, volume.Retained).Until()) + time.Minute)
		synctest.Wait()
		h.wantGone(testPod, testID)
		h.stop()
	})
}

// TestAttachKeepsALaterDeadline: looking at a volume does not make it go sooner.
func TestAttachKeepsALaterDeadline(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.leaveBehind()
		before := h.wantPhase(testID, volume.Retained)
		h.attach()
		h.detach()
		if after := h.wantPhase(testID, volume.Retained); after.Until() != before.Until() {
			t.Errorf("until %v, was %v", after.Until(), before.Until())
		}
		time.Sleep(time.Until(before.Until()) - time.Second)
		h.wantMarker("before the deadline")
		time.Sleep(2 * time.Second)
		h.wantGone(testPod, testID)
	})
}

func TestAttachIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*testNode, *volume.Publication)
		want   error
	}{
		"another namespace": {func(_ *testNode, p *volume.Publication) { p.Namespace = "other" }, volume.ErrNotFound},
		"no namespace":      {func(_ *testNode, p *volume.Publication) { p.Namespace = "" }, volume.ErrNotFound},
		"unknown":           {func(_ *testNode, p *volume.Publication) { p.Attach.ID = "csi-1" }, volume.ErrNotFound},
		"forged":            {func(_ *testNode, p *volume.Publication) { p.Attach.Pod = "other" }, volume.ErrNotFound},
		"own":               {func(_ *testNode, p *volume.Publication) { p.Attach.Pod = p.Pod }, volume.ErrInvalid},
		"attributes":        {func(_ *testNode, p *volume.Publication) { p.Refused = volume.Invalid("x", "is bad") }, volume.ErrInvalid},
		"in use":            {func(h *testNode, _ *volume.Publication) { h.makePod(testPod); h.publish() }, volume.ErrBusy},
		"attached": {func(h *testNode, _ *volume.Publication) {
			other := h.attaching()
			h.makePod("other")
			other.ID, other.Pod, other.Target.Path = "csi-2", "other", h.target("other", "mount")
			if err := h.node.Publish(h.t.Context(), other); err != nil {
				h.t.Fatal(err)
			}
		}, volume.ErrOtherTarget},
		"its own data": {func(h *testNode, p *volume.Publication) {
			own := *p
			own.Attach, own.Target.ReadOnly = volume.Place{}, false
			if err := h.node.Publish(h.t.Context(), own); err != nil {
				h.t.Fatal(err)
			}
			h.detach()
		}, volume.ErrConflict},
		"denied": {func(h *testNode, _ *volume.Publication) {
			if err := h.node.Own(h.t.Context(), testID, testPod, volume.Owner{Verdict: volume.Denied}); err != nil {
				h.t.Fatal(err)
			}
		}, volume.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.leaveBehind()
				p := h.attaching()
				tt.change(h, &p)
				synctest.Wait()
				before := len(h.mounter.mounts())
				wantError(t, h.node.Publish(t.Context(), p), tt.want)
				if len(h.mounter.mounts()) != before {
					t.Errorf("mounts: %+v", h.mounter.mounts())
				}
				h.wantMarker("after a refused attach")
			})
		})
	}
}

// TestFailedAttachHoldsNothing: the source has its deadline back.
func TestFailedAttachHoldsNothing(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.leaveBehind()
		h.mounter.fail(always(errors.New("no such device")), nil)
		wantError(t, h.node.Publish(t.Context(), h.attaching()), volume.ErrFailed)
		if _, err := os.Lstat(filepath.Join(h.target(lookingPod, "mount"))); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("target: %v", err)
		}
		if _, ok := h.records.get(lookingID); ok {
			t.Error("a record is left")
		}
		time.Sleep(testLifespan + time.Minute)
		h.wantGone(testPod, testID)
	})
}

// TestAttachOrDelete: a volume that is attached at the moment of its deadline is attached or gone,
// never both.
func TestAttachOrDelete(t *testing.T) {
	for i := range 40 {
		withNode(t, func(t *testing.T, h *testNode) {
			h.leaveBehind()
			p := h.attaching()
			time.Sleep(testLifespan + time.Duration(i-20)*time.Microsecond)
			err := h.node.Publish(t.Context(), p)
			time.Sleep(time.Minute)
			synctest.Wait()
			if has := h.hasMarker(testPod, testID); has != (err == nil) {
				t.Errorf("data is there: %t, attach: %v", has, err)
			}
		})
	}
}

// TestAbandonedAttach: the kubelet forgot the pod without an unpublish.
func TestAbandonedAttach(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.leaveBehind()
		h.attach()
		h.mounter.forgetMounts()
		h.removePod(lookingPod)
		time.Sleep(testLifespan + 4*testGrace)
		h.wantGone(testPod, testID)
		if _, ok := h.records.get(lookingID); ok {
			t.Error("a record is left")
		}
	})
}

// TestPublishedWhileAttached: the pod of the source is back. It is retained again after that, and still
// held.
func TestPublishedWhileAttached(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.leaveBehind()
		h.attach()
		h.makePod(testPod)
		h.publish()
		h.unpublish()
		time.Sleep(2 * testLifespan)
		h.wantMarker("attached")
		h.detach()
		time.Sleep(testLifespan)
		h.wantGone(testPod, testID)
	})
}

// TestUnmountedWhileAttached: the pod of the source was back, and its mount is gone, as after a reboot. Its
// unpublish is confirmed: that the other pod has the source mounted says nothing against it.
func TestUnmountedWhileAttached(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.leaveBehind()
		h.attach()
		h.makePod(testPod)
		h.publish()
		if err := h.mounter.Unmount(h.target(testPod, "mount")); err != nil {
			t.Fatal(err)
		}
		h.unpublish()
		h.removePod(testPod)
		time.Sleep(2 * testLifespan)
		h.wantMarker("attached")
		h.wantPhase(testID, volume.Retained)
		h.detach()
		time.Sleep(testLifespan)
		h.wantGone(testPod, testID)
	})
}
