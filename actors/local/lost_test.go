package local

import (
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestDiskTakenAwayUnderAVolume: no pod gets what is mounted there any more, and once its pods are gone it is staged anew.
func TestDiskTakenAwayUnderAVolume(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.create("v", gib))
		h.must(h.stage("v"))
		h.must(h.publish("v", "a"))
		h.locked(func() { h.lose("v") })
		h.want(h.publish("v", "b"), volume.ErrUnavailable, "publish")
		_, err := h.node.Expand(h.bounded(), pools.NodeExpansion{Volume: "v", Path: podPath("v", "a"), Required: gib})
		h.want(err, volume.ErrUnavailable, "expand")
		s, err := h.node.Stats(h.bounded(), "v", podPath("v", "a"))
		if err != nil || !s.Abnormal || !strings.Contains(s.Condition, "volume v") || !strings.Contains(s.Condition, "delete the pods") {
			h.Errorf("stats %+v, %v", s, err)
		}
		_, err = h.node.Stats(h.bounded(), "v", "/elsewhere")
		h.want(err, volume.ErrNotFound, "stats elsewhere")
		h.must(h.unpublish("v", "a"))
		h.must(h.unstage("v"))
		h.must(h.stage("v"))
		h.must(h.publish("v", "b"))
		h.must(h.unpublish("v", "b"))
		h.must(h.unstage("v"))
		h.must(h.remove("v"))
		h.pass(0)
		if left := h.leftovers(); len(left) > 0 {
			h.Errorf("left: %q", left)
		}
	})
}

// TestForeignMountIsNotTakenForALostOne where a volume is unpublished and unstaged: that of another volume stays.
func TestForeignMountIsNotTakenForALostOne(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.create("v", gib))
		h.must(h.create("other", gib))
		h.must(h.stage("other"))
		h.must(h.publish("other", "a"))
		h.want(h.node.Unpublish(h.bounded(), "v", podPath("other", "a")), volume.ErrForeignMount, "unpublish")
		h.want(h.node.Unstage(h.bounded(), "v", "/staging/other"), volume.ErrForeignMount, "unstage")
	})
}
