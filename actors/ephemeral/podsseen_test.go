package ephemeral

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/retained"
)

func TestPodThatVanishedWithoutAnUnpublish(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		// A reboot takes the mount away; the kubelet is about to publish again.
		h.mounter.forgetMounts()
		h.restart()
		time.Sleep(10 * testGrace)
		h.wantPhase(testID, volume.Publishing)

		h.removePod(testPod)
		time.Sleep(testGrace / 2)
		h.wantPhase(testID, volume.Publishing)
		time.Sleep(testGrace)
		h.wantPhase(testID, volume.Retained)
		h.wantMarker("retained")
		time.Sleep(testLifespan)
		h.wantGone(testPod, testID)
	})
}

// TestManyPodsThatVanished: the volumes look for them in several batches.
func TestManyPodsThatVanished(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		const volumes = 5 * podsBatch / 2
		h.makePod(testPod)
		for i := range volumes {
			p := h.publication()
			p.ID, p.Target.Path = numbered(i), h.target(testPod, string(numbered(i)))
			if err := h.node.Publish(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		h.mounter.forgetMounts()
		h.removePod(testPod)
		time.Sleep(2 * testGrace)
		for i := range volumes {
			h.wantPhase(numbered(i), volume.Retained)
		}
	})
}

// TestPodsOfPublishedVolumesAreMissed: a volume that is being deleted has no pod.
func TestPodsOfPublishedVolumesAreMissed(t *testing.T) {
	v := &volumes{index: &retained.Index{}}
	for _, id := range []volume.ID{"published", "deleting"} {
		v.index.Put(volume.Record{ID: id}.Retain(time.Now(), time.Hour))
	}
	v.index.Order("deleting")
	if ids := v.published([]volume.ID{"published", "deleting"}); !slices.Equal(ids, []volume.ID{"published"}) {
		t.Errorf("published: %v", ids)
	}
}

// TestBlindnessConcludesNothing: a pods directory that cannot be read, or shows not a single pod
// while a volume is published, says nothing about its pod.
func TestBlindnessConcludesNothing(t *testing.T) {
	for name, blind := range map[string]func(h *testNode){
		"unreadable": func(h *testNode) {
			if err := os.RemoveAll(h.podsDir()); err != nil {
				h.t.Fatal(err)
			}
		},
		"empty": func(h *testNode) { h.removePod(testPod); h.removePod(ownPod) },
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.publish()
				h.mounter.forgetMounts()
				h.restart()
				if err := h.node.CheckPods(); err != nil {
					t.Errorf("with pods: %v", err)
				}
				blind(h)
				time.Sleep(10 * testGrace)
				h.wantPhase(testID, volume.Publishing)
				if err := h.node.CheckPods(); err == nil || !strings.Contains(err.Error(), h.podsDir()) {
					t.Errorf("%v does not name the directory", err)
				}
				h.makePod(ownPod)
				time.Sleep(2 * testGrace)
				h.wantPhase(testID, volume.Retained)
				if err := h.node.CheckPods(); err != nil {
					t.Errorf("with a pod again: %v", err)
				}
			})
		})
	}
}

// TestStuckDeletionsMissNoPods: a volume whose deletion is stuck is not published.
func TestStuckDeletionsMissNoPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.retained(gonePod, testID, testLifespan, testLifespan)
		h.bindElsewhere(gonePod, testID)
		h.removePod(testPod)
		h.removePod(ownPod)
		h.start()
		time.Sleep(time.Hour)
		if err := h.node.CheckPods(); err != nil {
			t.Error(err)
		}
		h.stop()
	})
}
