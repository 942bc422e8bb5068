package pools

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/fakepools"
)

// inLocalAfterlife runs a test with a controller and the class nvme, whose volumes have a lifespan.
func inLocalAfterlife(t *testing.T, lifespan time.Duration, test func(h *testPools)) {
	t.Helper()
	inPools(t, func(h *testPools) {
		h.addClass("nvme", func(s *v1alpha1.PoolClassSpec) { s.Lifespan = rules.LifespanToSpec(lifespan) })
	}, test)
}

// bindLocal makes a volume on a node for a claim of ns.
func (h *testPools) bindLocal(name string, gib int64, near ...[]string) {
	h.Helper()
	addClaim(h.T, h.kube, "ns", name, nil)
	if _, err := h.local().CreateVolume(h.Context(), newLocal(name, gib, near...)); err != nil {
		h.Fatal(err)
	}
	synctest.Wait()
}

// retainLocal deletes the claim of a volume on a node, which stays.
func (h *testPools) retainLocal(name string) {
	h.Helper()
	dropClaim(h.T, h.kube, "ns", name)
	if err := h.local().DeleteVolume(h.Context(), name); err != nil {
		h.Fatal(err)
	}
	synctest.Wait()
}

// wantOn fails the test unless a disk has these volumes; a retained one has an asterisk, by its comment.
func (h *testPools) wantOn(when string, n *fakepools.Node, uuid, want string) {
	h.Helper()
	var got []string
	all, _ := n.On(uuid)
	for _, v := range all {
		name := v.Name
		if pools.ParseComment(v.Comment).Retained != nil {
			name += "*"
		}
		got = append(got, name)
	}
	if strings.Join(got, " ") != want {
		h.Errorf("%s: on the disk are %q, want %q", when, got, want)
	}
}

// TestAfterlifeOnANode: a claim's data are kept where they are, and come back there alone.
func TestAfterlifeOnANode(t *testing.T) {
	inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
		one, two := nodeWith(disk1), nodeWith(disk2)
		h.connects("n1", one)
		h.connects("n2", two)
		h.bindLocal("v1", 10, []string{disk1})

		one.Use(disk1, "v1", true)
		if err := h.local().DeleteVolume(h.Context(), "v1"); !errors.Is(err, pools.ErrInUse) {
			h.Errorf("a staged volume was retained: %v", err)
		}
		one.Use(disk1, "v1", false)
		h.retainLocal("v1")
		h.wantOn("retained", one, disk1, "v1*")

		addClaim(h.T, h.kube, "ns", "v2", restores("v1"))
		_, err := h.local().CreateVolume(h.Context(), newLocal("v2", 10, []string{disk2}))
		if !errors.Is(err, volume.ErrNoSpace) || !strings.Contains(err.Error(), "on a disk of node n1") {
			h.Errorf("asked for on another node: %v", err)
		}
		h.wantEvents("v2 Warning RestoreFailed: the data of volume v1 are on a disk of node n1", 1)
		h.wantOn("still retained", one, disk1, "v1*")
		got, err := h.local().CreateVolume(h.Context(), newLocal("v2", 12, []string{disk1}))
		if err != nil || got.ID != "v1" || got.On != disk1 || got.Size != 12<<30 {
			h.Fatalf("restored %+v, %v", got, err)
		}
		h.wantOn("restored", one, disk1, "v1")

		// An array's driver restores nothing of a node.
		h.retainLocal2("v2", "v1")
		addClaim(h.T, h.kube, "ns", "v3", restores("v2"))
		if _, err := h.controller.OfKind(pools.KindArray).CreateVolume(h.Context(), newLocal("v3", 12)); !errors.Is(err, volume.ErrInvalid) {
			h.Errorf("restored by the other driver: %v", err)
		}
		h.pass(25 * time.Hour)
		h.wantOn("expired", one, disk1, "")
	})
}

// retainLocal2 deletes a claim that has the volume of an earlier one.
func (h *testPools) retainLocal2(claim, id string) {
	h.Helper()
	dropClaim(h.T, h.kube, "ns", claim)
	if err := h.local().DeleteVolume(h.Context(), id); err != nil {
		h.Fatal(err)
	}
	synctest.Wait()
}

// TestRetainedVolumesOfANodeGiveWay: they count as room, and the oldest go when it is needed on their node.
func TestRetainedVolumesOfANodeGiveWay(t *testing.T) {
	inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
		one, two := nodeWith(disk1), nodeWith(disk2)
		h.connects("n1", one)
		h.connects("n2", two)
		for _, name := range []string{"a", "b", "c"} {
			h.bindLocal(name, 25, []string{disk1})
			h.pass(testInterval)
			h.retainLocal(name)
			h.pass(2 * testInterval)
		}
		got, err := h.local().Capacity(h.Context(), pools.Wanted{Class: "nvme", Near: [][]string{{disk1}}})
		if err != nil || got.Available != 90<<30 {
			h.Errorf("the capacity is %+v, %v", got, err)
		}
		// The second node has room, but the first is the one that the scheduler has chosen.
		if v, err := h.local().CreateVolume(h.Context(), newLocal("new", 60, []string{disk1})); err != nil || v.On != disk1 {
			h.Fatalf("made %+v, %v", v, err)
		}
		h.wantOn("then", one, disk1, "c* new")
		// Where any node will do, the one with room takes it.
		if v, err := h.local().CreateVolume(h.Context(), newLocal("other", 60)); err != nil || v.On != disk2 {
			h.Fatalf("made %+v, %v", v, err)
		}
		h.wantOn("then", one, disk1, "c* new")
	})
}

// TestRetainedVolumesOfANodeGiveWayToGrowth, also into what is kept free of new volumes.
func TestRetainedVolumesOfANodeGiveWayToGrowth(t *testing.T) {
	inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
		one := nodeWith(disk1)
		h.connects("n1", one)
		for _, name := range []string{"a", "b", "c"} {
			h.bindLocal(name, 20, []string{disk1})
			h.pass(testInterval)
			h.retainLocal(name)
			h.pass(2 * testInterval)
		}
		if _, err := h.local().CreateVolume(h.Context(), newLocal("v", 20, []string{disk1})); err != nil {
			h.Fatal(err)
		}
		h.pass(2 * testInterval)
		if got, err := h.local().GrowVolume(h.Context(), "v", 55*gib, 0); err != nil || got.Size != 55*gib {
			h.Fatalf("grew to %+v, %v", got, err)
		}
		h.wantOn("then", one, disk1, "b* c* v")
		if got, err := h.local().GrowVolume(h.Context(), "v", 95*gib, 0); err != nil || got.Size != 95*gib {
			h.Fatalf("grew to %+v, %v", got, err)
		}
		h.wantOn("then", one, disk1, "v")
		if _, err := h.local().GrowVolume(h.Context(), "v", 101*gib, 0); !errors.Is(err, volume.ErrNoSpace) {
			h.Errorf("grow to more than there is: %v", err)
		}
	})
}

// TestRetainedVolumesOfANodeGiveWayToARestore that asks for more than its pool has free. The one that is restored stays,
// although it is the oldest.
func TestRetainedVolumesOfANodeGiveWayToARestore(t *testing.T) {
	inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
		one := nodeWith(disk1)
		h.connects("n1", one)
		for _, name := range []string{"a", "b", "c"} {
			h.bindLocal(name, 20, []string{disk1})
			h.pass(testInterval)
			h.retainLocal(name)
			h.pass(2 * testInterval)
		}
		addClaim(h.T, h.kube, "ns", "again", restores("a"))
		got, err := h.local().CreateVolume(h.Context(), newLocal("again", 75, []string{disk1}))
		if err != nil || got.ID != "a" || got.Size != 75*gib {
			h.Fatalf("restored %+v, %v", got, err)
		}
		h.wantOn("then", one, disk1, "a c*")

		// More than there is: nothing goes, and the volume is retained as before.
		h.retainLocal2("again", "a")
		addClaim(h.T, h.kube, "ns", "more", restores("again"))
		if _, err := h.local().CreateVolume(h.Context(), newLocal("more", 101, []string{disk1})); !errors.Is(err, volume.ErrNoSpace) {
			h.Errorf("more than there is: %v", err)
		}
		synctest.Wait()
		h.wantEvents("needs the room in pool", 2) // b, and its claim
		if v := get[v1alpha1.PoolVolume](h, "a"); !rules.IsKept(v) || v.Spec.ClaimRef.Name != "again" {
			h.Errorf("the volume is %+v, %+v", v.Spec, v.Status)
		}
	})
}

// TestRetainedVolumesOfANodeThatIsAway wait for it.
func TestRetainedVolumesOfANodeThatIsAway(t *testing.T) {
	inLocalAfterlife(t, time.Hour, func(h *testPools) {
		one := nodeWith(disk1)
		h.connects("n1", one)
		h.bindLocal("a", 10, []string{disk1})
		h.retainLocal("a")
		h.controller.NodeAway("n1", one)
		h.pass(3 * time.Hour)
		h.wantOn("away", one, disk1, "a*")
		if v := get[v1alpha1.PoolVolume](h, "a"); v.Status.State != v1alpha1.VolumeRetained {
			h.Errorf("it is %+v", v.Status)
		}
		h.connects("n1", one)
		h.pass(5 * time.Minute)
		h.wantOn("back", one, disk1, "")
	})
}

// TestPressureOnANode evicts, although other users of the disk take the room.
func TestPressureOnANode(t *testing.T) {
	inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
		one := nodeWith(disk1)
		h.connects("n1", one)
		for _, name := range []string{"a", "b"} {
			h.bindLocal(name, 10, []string{disk1})
			h.retainLocal(name)
			h.pass(time.Hour)
		}
		one.Change(disk1, func(p *local.Pool) { p.Free = 4 << 30 })
		h.pass(4 * testInterval)
		h.wantOn("under pressure", one, disk1, "")
		h.wantEvents("Evicted: the retained data of the claim ns/a", 2)
	})
}
