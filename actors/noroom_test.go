package actors

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/store"
	"github.com/katbox/katbox/internal/volume"
)

// noRoomToPublish has each publish find that there is no room for its record.
func (h *house) noRoomToPublish() {
	h.records.fail(func(changes []store.Change) error {
		if changes[0].Record != nil && changes[0].Record.Phase == volume.Publishing {
			return unix.ENOSPC
		}
		return nil
	})
}

// TestNoRoomElsewhereDeletesNothing: the kernel has one error for a full disk, for
// another disk that is full, and for too many mounts. Retained volumes make room on
// the first one only.
func TestNoRoomElsewhereDeletesNothing(t *testing.T) {
	const volumes = 5
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		for i := range volumes {
			h.retained("pod", numbered(i), time.Hour, testLifespan)
		}
		h.start()
		h.mounter.fail(always(unix.ENOSPC), nil)
		for range volumes {
			err := h.node.Publish(t.Context(), h.publication())
			wantError(t, err, volume.ErrFailed)
			if strings.Contains(err.Error(), "working directory") {
				t.Errorf("%q is not about the working directory", err)
			}
			time.Sleep(time.Minute)
		}
		for i := range volumes {
			if !h.hasMarker("pod", numbered(i)) {
				t.Errorf("volume %d is gone", i)
			}
		}
		h.stop()
	})
}
