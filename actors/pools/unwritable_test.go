package pools

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/fakepools"
)

// takesNothing makes changes fail as on a disk that has turned read-only; what is there can be read.
func takesNothing(c fakepools.Call) error {
	switch c.Method {
	case "CreateVolume", "GrowVolume", "CommentVolume", "DeleteVolume", "CreateSnapshot", "DeleteSnapshot":
		return fmt.Errorf("%w: read-only file system", local.ErrUnwritable)
	}
	return nil
}

// TestClaimsGoElsewhere from a node whose disk takes no writes, or cannot be asked, before the controller has learnt that.
// No retained volume goes for that: it would make no room.
func TestClaimsGoElsewhere(t *testing.T) {
	for name, fails := range map[string]func(fakepools.Call) error{
		"takes no writes": takesNothing,
		"is away":         fakepools.Method(volume.ErrUnavailable, "Pools", "Volume", "Volumes", "CreateVolume", "CommentVolume", "DeleteVolume"),
	} {
		inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
			one, two := nodeWith(disk1), nodeWith(disk2)
			h.connects("n1", one)
			h.connects("n2", two)
			h.bindLocal("old", 10, []string{disk1})
			h.retainLocal("old")
			one.Fail(fails)
			if _, err := h.local().CreateVolume(h.Context(), newLocal("w", 1, []string{disk1})); !errors.Is(err, volume.ErrNoSpace) {
				h.Errorf("%s: a claim that wants this node: %v; it has to be asked for elsewhere", name, err)
			}
			if h.exists(&v1alpha1.PoolVolume{}, "w") {
				h.Errorf("%s: the resource of what was not made is left", name)
			}
			got, err := h.local().CreateVolume(h.Context(), newLocal("x", 1, []string{disk1}, []string{disk2}))
			if err != nil || got.On != disk2 {
				h.Errorf("%s: a claim that may be elsewhere: %+v, %v", name, got, err)
			}
			one.Fail(nil)
			h.pass(time.Hour)
			h.wantOn(name, one, disk1, "old*")
			if v := get[v1alpha1.PoolVolume](h, "old"); v.Status.State != v1alpha1.VolumeRetained {
				h.Errorf("%s: what is retained is %s", name, v.Status.State)
			}
			if got, err := h.local().CreateVolume(h.Context(), newLocal("w", 1, []string{disk1})); err != nil || got.On != disk1 {
				h.Errorf("%s: once it works again: %+v, %v", name, got, err)
			}
		})
	}
}

// TestBegunOnADiskThatTakesNoWrites: what a node has begun to make stays there, and is made once that goes on.
func TestBegunOnADiskThatTakesNoWrites(t *testing.T) {
	inLocal(t, func(h *testPools) {
		one := nodeWith(disk1, disk2)
		h.connects("n1", one)
		one.Slow(disk1)
		one.Lose(takesNothing)
		w := newLocal("w", 1, []string{disk1}, []string{disk2})
		if _, err := h.local().CreateVolume(h.Context(), w); errors.Is(err, volume.ErrNoSpace) || !errors.Is(err, volume.ErrUnavailable) {
			h.Errorf("what has begun: %v", err)
		}
		one.Lose(nil)
		one.Finish(disk1)
		if got, err := h.local().CreateVolume(h.Context(), w); err != nil || got.On != disk1 {
			h.Errorf("once it goes on: %+v, %v", got, err)
		}
		h.wantOn("at last", one, disk2, "")
	})
}
