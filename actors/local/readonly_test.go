package local

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestDiskTurnsReadOnly: the node says so before the next claim comes, nothing is left of a claim that comes before that,
// and what is on the disk can be read. All goes on by itself once the disk can be written to.
func TestDiskTurnsReadOnly(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.create("v", gib))
		h.retained("kept")
		before := h.promised()
		readOnly := func(is bool) { h.locked(func() { h.disks["/fast"].readOnly = is }) }
		readOnly(true)
		h.want(h.create("w", gib), local.ErrUnwritable, "create before the disk was looked at")
		_, err := h.find("w")
		h.want(err, volume.ErrNotFound, "what was not made")
		_, err = h.node.GrowVolume(h.bounded(), fast, "v", 2*gib)
		h.want(err, local.ErrUnwritable, "grow")
		h.want(h.remove("kept"), local.ErrUnwritable, "delete")
		h.pass(defaultWatchInterval + time.Second)
		all, err := h.node.Pools(h.bounded())
		if err != nil || all[0].Failed == "" || all[1].Failed != "" || all[0].Provisioned != before {
			h.Errorf("pools %+v, %v, want %d bytes promised", all, err, before)
		}
		if _, up := h.figure(fast); up {
			h.Error("it is up, as far as the metrics know")
		}
		if v, err := h.find("v"); err != nil || v.Size != gib {
			h.Errorf("what is there is %+v, %v", v, err)
		}
		h.read("kept").Close()
		_, err = h.node.CreateVolume(h.bounded(), slow, local.NewVolume{Name: "other", Size: gib})
		h.must(err)
		h.must(h.node.DeleteVolume(h.bounded(), slow, "other"))
		opens := h.disks["/fast"].opens
		readOnly(false)
		h.pass(defaultWatchInterval + time.Second)
		if all, err := h.node.Pools(h.bounded()); err != nil || all[0].Failed != "" || h.disks["/fast"].opens != opens {
			h.Errorf("pools %+v, %v, opened %d times", all, err, h.disks["/fast"].opens-opens)
		}
		if _, up := h.figure(fast); !up {
			h.Error("it is not up, as far as the metrics know")
		}
		h.must(h.create("w", gib))
		h.must(h.remove("kept"))
	})
}

// TestDiskTurnsReadOnlyInTheMiddle of making a volume: that is finished once the disk can be written to.
func TestDiskTurnsReadOnlyInTheMiddle(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.locked(func() {
			h.fail = func(call, _ string) error {
				if call == "make" {
					h.disks["/fast"].readOnly = true
				}
				return nil
			}
		})
		h.want(h.create("v", gib), volume.ErrUncertain, "create")
		h.pass(time.Hour)
		h.locked(func() { h.fail, h.disks["/fast"].readOnly = nil, false })
		h.pass(time.Hour)
		if v, err := h.find("v"); err != nil || !v.Ready {
			h.Errorf("it is %+v, %v", v, err)
		}
		h.must(h.remove("v"))
		h.pass(0)
		if left := h.leftovers(); len(left) > 0 {
			h.Errorf("left: %q", left)
		}
	})
}

// TestDiskWithBadBlocks: records and names can be written, and data cannot. Nothing is left of a volume, and the error says so:
// else its claim would wait for this disk.
func TestDiskWithBadBlocks(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.locked(func() {
			h.fail = func(call, _ string) error {
				if call == "make" {
					return unix.EIO
				}
				return nil
			}
		})
		before := h.promised()
		err := h.create("v", gib)
		h.want(err, local.ErrUnwritable, "create")
		if errors.Is(err, volume.ErrUncertain) {
			t.Errorf("the error is %v", err)
		}
		h.pass(0)
		_, err = h.find("v")
		h.want(err, volume.ErrNotFound, "what was not made")
		if left := h.leftovers(); len(left) > 0 || h.promised() != before {
			h.Errorf("left: %q, and %d bytes are promised, want %d", left, h.promised(), before)
		}
	})
}

func (h *harness) promised() int64 {
	all, err := h.node.Pools(h.bounded())
	h.must(err)
	return all[0].Provisioned
}
