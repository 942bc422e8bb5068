package arrays

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestDiskThatDoesNotSayWhichVolumeItIs is used once the controller has confirmed it, and no other one from then on.
func TestDiskThatDoesNotSayWhichVolumeItIs(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.locked(func() { h.apiDown = true })
		h.want(h.stage("number"), volume.ErrUnavailable, "without the API server")
		h.locked(func() {
			h.apiDown = false
			h.disks["number.node"] = "t10.another"
		})
		err := h.stage("number")
		h.want(err, volume.ErrUncertain, "a disk that the controller refuses")
		if err == nil || !strings.Contains(err.Error(), "t10.another") {
			h.Errorf("%v does not say which disk it is", err)
		}
		if len(h.devices) != 0 || h.lunOf("number").formats != 0 {
			h.Errorf("%d disks are left, formatted %d times", len(h.devices), h.lunOf("number").formats)
		}
		h.locked(func() { delete(h.disks, "number.node") })
		h.must(h.stage("number"))
		h.must(h.publish("number", "a"))
		if h.disks["number.node"] != numbersWWID || h.diskBytes != 1<<30 || h.confirmed != 1 || h.lunOf("number").formats != 1 {
			h.Errorf("the controller knows %q of %d bytes, by %d questions", h.disks, h.diskBytes, h.confirmed)
		}
		h.restart(true)
		h.must(h.stage("number"))
		if h.confirmed != 1 {
			h.Errorf("%d questions for what is staged", h.confirmed)
		}
		h.must(h.unpublish("number", "a"))
		h.must(h.unstage("number"))
		h.pass(time.Minute)
		h.clean()
	})
}

// TestDiskThatIsKnown needs no controller; another one at its LUN is refused.
func TestDiskThatIsKnown(t *testing.T) {
	inWorld(t, func(h *harness) {
		s := staging("number")
		s.Attachment.WWID = numbersWWID
		h.must(h.node.Stage(h.bounded(), s))
		h.must(h.unstage("number"))
		h.locked(func() { h.lunOf("number").wwid = "t10.another" })
		if err := h.node.Stage(h.bounded(), s); !errors.Is(err, volume.ErrUncertain) {
			h.Errorf("another disk: %v", err)
		}
		if h.confirmed != 0 {
			h.Errorf("%d questions about a disk that is known", h.confirmed)
		}
		h.must(h.unstage("number"))
		h.pass(time.Minute)
		h.clean()
	})
}

// TestDiskThatIsExchanged while its mount is gone, and the record is there: the array has given the LUN away.
func TestDiskThatIsExchanged(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("number"))
		h.locked(func() { h.mounts, h.lunOf("number").wwid = nil, "t10.another" })
		h.want(h.stage("number"), volume.ErrUncertain, "stage")
		if h.confirmed != 1 {
			h.Errorf("%d questions", h.confirmed)
		}
		h.must(h.unstage("number"))
		h.pass(time.Minute)
		h.clean()
	})
}

func (h *harness) want(err, want error, doing string) {
	h.Helper()
	if !errors.Is(err, want) {
		h.Errorf("%s: %v, want %v", doing, err, want)
	}
}
