package ephemeral

import (
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// wantNames checks that a record has the names of the test node's publication, and its publish time.
func wantNames(t *testing.T, when string, r volume.Record, published time.Time) {
	t.Helper()
	if r.Namespace != "default" || r.PodName != "batch-1" || r.VolumeName != "scratch" || r.ServiceAccount != "robot" {
		t.Errorf("%s: the record has not the names of the publish: %+v", when, r)
	}
	if !r.Published.Equal(published) {
		t.Errorf("%s: published %v, want %v", when, r.Published, published)
	}
}

// TestRecordKeepsNamesAndPublishTime through repeats, restarts and sleep; a publish of the retained
// volume begins anew.
func TestRecordKeepsNamesAndPublishTime(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		began := time.Now()
		h.publish()
		time.Sleep(time.Hour)
		h.publish()
		h.restart()
		h.publish()
		h.unpublish()
		wantNames(t, "retained", h.wantPhase(testID, volume.Retained), began)
		h.restart()

		time.Sleep(time.Hour)
		again := time.Now().Truncate(time.Second)
		h.publish()
		wantNames(t, "published again", h.wantPhase(testID, volume.Publishing), again)
		h.unpublish()
		wantNames(t, "retained again", h.wantPhase(testID, volume.Retained), again)
		time.Sleep(testLifespan + time.Minute)
		h.wantGone(testPod, testID)
	})
}

// TestVolumeFoundMountedGetsItsNames with the publish that the kubelet repeats. When it was
// published first is not known.
func TestVolumeFoundMountedGetsItsNames(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.stop()
		h.records.lose()
		h.start()
		h.publish()
		h.unpublish()
		wantNames(t, "retained", h.wantPhase(testID, volume.Retained), time.Time{})
	})
}
