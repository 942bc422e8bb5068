package ephemeral

import (
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// looker returns a publish that attaches the test's volume, with the ID and the target that a kubelet gives it.
func (h *testNode) looker() volume.Publication {
	p := h.attaching()
	p.VolumeName, p.Target = "scratch", h.atKubelets(lookingPod).Target
	p.ID = volume.KubeletID(lookingPod, p.VolumeName)
	return p
}

// TestRecordsLostWhileAttached: the mount of a volume that a pod has attached tells whose it is. Its pod comes to its
// end as if nothing was lost, and what was attached is kept until then.
func TestRecordsLostWhileAttached(t *testing.T) {
	for name, lose := range map[string]func(h *testNode, p volume.Publication) error{
		"all":                  func(h *testNode, _ volume.Publication) error { h.records.lose(); return nil },
		"that of the attached": func(h *testNode, _ volume.Publication) error { return h.records.Commit([]volume.Change{{ID: testID}}) },
		"that of the looker":   func(h *testNode, p volume.Publication) error { return h.records.Commit([]volume.Change{{ID: p.ID}}) },
		"none":                 func(*testNode, volume.Publication) error { return nil },
		"the looker's target": func(h *testNode, p volume.Publication) error {
			r, _ := h.records.get(p.ID)
			r = r.WithoutTarget(p.Target.Path)
			return h.records.Commit([]volume.Change{{ID: p.ID, Record: &r}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.leaveBehind()
				p := h.looker()
				if err := h.node.Publish(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				h.stop()
				if err := lose(h, p); err != nil {
					t.Fatal(err)
				}
				h.start()
				for range 2 { // the kubelet starts anew, too
					if err := h.node.Publish(t.Context(), p); err != nil {
						t.Errorf("published again: %v", err)
					}
				}
				time.Sleep(3 * testLifespan)
				h.wantMarker("attached")
				if !h.retainedHere(testID) {
					t.Error("what is attached is in no list")
				}
				if err := h.node.Unpublish(t.Context(), p.ID, p.Target.Path); err != nil {
					t.Fatalf("unpublish: %v", err)
				}
				if left := h.mounter.mounts(); len(left) > 0 {
					t.Errorf("mounted: %v", left)
				}
				if _, ok := h.records.get(p.ID); ok {
					t.Error("a record of the looker is left")
				}
				time.Sleep(testRelease - time.Second)
				h.wantMarker("in the grace")
				time.Sleep(testLifespan)
				h.wantGone(testPod, testID)
			})
		})
	}
}

// TestUnpublishedAtOnceAfterRecordsWereLost: the pod ends before the kubelet has published anything again.
func TestUnpublishedAtOnceAfterRecordsWereLost(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.leaveBehind()
		p := h.looker()
		if err := h.node.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		h.stop()
		h.records.lose()
		h.start()
		if err := h.node.Unpublish(t.Context(), p.ID, p.Target.Path); err != nil {
			t.Fatalf("unpublish: %v", err)
		}
		h.wantMarker("unpublished")
		time.Sleep(2 * testLifespan)
		h.wantGone(testPod, testID)
	})
}

// TestForeignMountOfAKnownVolume: a volume with a record of its own is not taken for one that has another attached.
func TestForeignMountOfAKnownVolume(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.leaveBehind()
		p := h.looker()
		p.Attach, p.Target.ReadOnly = volume.Place{}, false
		if err := h.node.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := h.mounter.Mount(h.data(testPod, testID), p.Target.Path, "", []string{"bind"}); err != nil {
			t.Fatal(err)
		}
		h.restart()
		if r, _ := h.records.get(p.ID); r.Attach != (volume.Place{}) || !r.Phase.Live() {
			t.Errorf("it became %+v", r)
		}
		wantError(t, h.node.Unpublish(t.Context(), p.ID, p.Target.Path), volume.ErrForeignMount)
	})
}
