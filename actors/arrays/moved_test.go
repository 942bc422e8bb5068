package arrays

import (
	"errors"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestExportThatHasMoved: the call is as old as the attachment, and the array is elsewhere by now.
func TestExportThatHasMoved(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.set(nas, true)
		h.locked(func() { h.exports["nfs"] = "nas2:/export/nfs" })
		h.must(h.stage("nfs"))
		if m, ok := h.at("/staging/nfs"); !ok || m.Source != "nas2:/export/nfs" {
			t.Fatalf("mounted: %t, from %s", ok, m.Source)
		}
		h.must(h.publish("nfs", "a"))
		// It moves once more. What is mounted stays, whatever the next call says.
		h.locked(func() { h.exports["nfs"] = "nas3:/export/nfs" })
		h.must(h.stage("nfs"))
		h.restart(true)
		h.must(h.stage("nfs"))
		if export := h.records["nfs"].Attachment.Export; export != "nas2:/export/nfs" {
			t.Errorf("the record says %s", export)
		}
		h.must(h.unpublish("nfs", "a"))
		h.must(h.unstage("nfs"))
		h.clean()
	})
}

// TestExportThatIsRenamed: a person has given it another name on the array, and Kubernetes says the one of the attachment
// each time that it asks.
func TestExportThatIsRenamed(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.locked(func() { h.exports["nfs"] = nas + ":/other" })
		h.must(h.stage("nfs"))
		h.must(h.publish("nfs", "a"))
		h.must(h.stage("nfs"))
		h.restart(true)
		h.locked(func() { h.apiDown = true })
		h.must(h.stage("nfs"))
		h.must(h.publish("nfs", "b"))
		if m, _ := h.at("/staging/nfs"); m.Source != nas+":/other" {
			t.Errorf("mounted from %s", m.Source)
		}
		another := staging("nfs")
		another.Attachment.Export = nas + ":/third"
		if err := h.node.Stage(h.bounded(), another); !errors.Is(err, volume.ErrConflict) {
			t.Errorf("another export: %v", err)
		}
		h.must(h.unpublish("nfs", "a"))
		h.must(h.unpublish("nfs", "b"))
		h.must(h.unstage("nfs"))
		h.clean()
	})
}

// TestExportIsAsTheCallSays where the API server does not answer, or says nothing.
func TestExportIsAsTheCallSays(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.locked(func() { h.apiDown, h.exports["nfs"] = true, "nas2:/export/nfs" })
		h.must(h.stage("nfs"))
		if m, _ := h.at("/staging/nfs"); m.Source != nas+":/export/nfs" {
			t.Errorf("mounted from %s", m.Source)
		}
	})
}

// TestLUNThatHasMoved: the array has the volume at another LUN than at its attachment, and another volume at that.
func TestLUNThatHasMoved(t *testing.T) {
	inWorld(t, func(h *harness) {
		old, now := staging("ext4").Attachment.LUN, 77
		h.locked(func() {
			h.luns[targetA][now], h.luns[targetA][old] = h.luns[targetA][old], &lun{serial: "serial-stranger", size: 1 << 30}
			h.lunNumbers["ext4"] = now
		})
		h.must(h.stage("ext4"))
		h.must(h.publish("ext4", "a"))
		if r := h.records["ext4"]; r.Attachment.LUN != now || h.luns[targetA][old].formats != 0 || h.luns[targetA][now].formats != 1 {
			t.Errorf("the record has LUN %d, the stranger's volume was formatted %d times", r.Attachment.LUN, h.luns[targetA][old].formats)
		}
		h.must(h.unpublish("ext4", "a"))
		h.must(h.unstage("ext4"))
		// At neither is the volume: it is not attached.
		h.locked(func() { delete(h.luns[targetA], now) })
		if err := h.stage("ext4"); err == nil {
			t.Error("a stranger's volume was staged")
		}
		h.pass(time.Minute)
		h.must(h.unstage("ext4"))
		h.clean()
	})
}
