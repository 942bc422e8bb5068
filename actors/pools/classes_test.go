package pools

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// reserve asks for room.
func (h *testPools) reserve(name, class string, gib int64) (poolmessages.Reservation, error) {
	h.Helper()
	return ask(h, &poolmessages.ReservePool{Volume: name, Class: class, Bytes: gib << 30})
}

// TestReservationOutlivesAVolumeThatIsGone: that an earlier volume of the name is gone may be heard late, when room is
// kept for another one already.
func TestReservationOutlivesAVolumeThatIsGone(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.sized("a", 100)
	}, func(h *testPools) {
		if _, err := h.reserve("v", "fast", 60); err != nil {
			h.Fatal(err)
		}
		h.controller.Root.Send(h.controller.Single(poolmessages.ClassesName), &poolmessages.ReleasePool{Volume: "v", Gone: true})
		if _, err := h.reserve("w", "fast", 60); !errors.Is(err, volume.ErrNoSpace) {
			h.Errorf("the room that is kept was given away: %v", err)
		}
	})
}

// TestEmptyClassIsReady.
func TestEmptyClassIsReady(t *testing.T) {
	inPools(t, func(h *testPools) { h.addClass("fast", nil) }, func(h *testPools) {
		c := h.class("fast")
		if c.Status.State != v1alpha1.ClassReady || c.Status.Capacity.Mode != "normal" || c.Status.Counters != (v1alpha1.ClassCounters{}) {
			h.Errorf("an empty class is %+v", c.Status)
		}
		if got, err := h.controller.Capacity(h.Context(), pools.Wanted{Class: "fast"}); err != nil || got != (pools.Capacity{}) {
			h.Errorf("it has room for %+v, %v", got, err)
		}
		if _, err := h.reserve("v", "fast", 1); !errors.Is(err, volume.ErrNoSpace) || !strings.Contains(err.Error(), "it has no pools") {
			h.Errorf("a volume in it: %v", err)
		}
	})
}

// TestPoolJoinsTheClassThatItNames, and moves to another one.
func TestPoolJoinsTheClassThatItNames(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.addClass("slow", nil)
		h.addPool("a", "fast")
	}, func(h *testPools) {
		if n := h.class("fast").Status.Counters.Pools; n != 1 {
			h.Errorf("fast has %d pools", n)
		}
		h.changePool("a", func(p *v1alpha1.Pool) { p.Spec.ClassName = "slow" })
		if fast, slow := h.class("fast").Status.Counters.Pools, h.class("slow").Status.Counters.Pools; fast != 0 || slow != 1 {
			h.Errorf("fast has %d pools, slow %d", fast, slow)
		}
	})
}

// TestCapacityAndCountersFollowTheArray within one interval; the class sums them up, and takes the
// worst mode.
func TestCapacityAndCountersFollowTheArray(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.addOurs(h.addPool("a", "fast"), "pvc-1")
		h.addOurs(h.addPool("b", "fast"), "pvc-2")
	}, func(h *testPools) {
		h.pass(2 * testInterval)
		c := h.class("fast").Status
		if c.Capacity.Total.Value() != 2000<<30 || c.Capacity.Available.Value() != 1800<<30 || c.Capacity.Provisioned.Value() != 400<<30 ||
			c.Capacity.Mode != "normal" || c.Counters != (v1alpha1.ClassCounters{Pools: 2, Ready: 2, Volumes: 2}) {
			h.Errorf("the class is %+v", c)
		}
		h.arrays["https://b"].change(func(a *testArray) { a.health.Pools[0].Available = 90 << 30 })
		h.pass(testInterval * 11 / 10)
		p := h.pool("b").Status
		if p.State != v1alpha1.PoolReady || p.Capacity.Available.Value() != 90<<30 || p.Capacity.Mode != "protected" {
			h.Errorf("the pool is %s, %+v", p.State, p.Capacity)
		}
		h.wantState("b", v1alpha1.PoolReady, v1alpha1.ConditionCapacityHealthy, "ModeProtected")
		h.wantEvents("b Warning CapacityAlert", 1)
		if c := h.class("fast").Status.Capacity; c.Mode != "protected" || c.Available.Value() != 990<<30 {
			h.Errorf("the class is %+v", c)
		}
		if got, err := h.reserve("v", "fast", 1); err != nil || got.Pool != "a" {
			h.Errorf("a volume goes to %q, %v; the other one is protected", got.Pool, err)
		}
		h.arrays["https://b"].change(func(a *testArray) { a.health.Pools[0].Mode = array.Normal })
		h.pass(testInterval * 11 / 10)
		h.wantEvents("b Normal CapacityNormal", 1)
	})
}

// TestClassIsFailedWhenAPoolIs, and not when one cannot be reached.
func TestClassIsFailedWhenAPoolIs(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.addPool("a", "fast")
		h.addPool("b", "fast").fails = array.ErrTimeout
	}, func(h *testPools) {
		if c := h.class("fast").Status; c.State != v1alpha1.ClassReady || c.Counters.Ready != 1 {
			h.Errorf("the class is %+v", c)
		}
		h.arrays["https://a"].change(func(a *testArray) { a.health.Pools[0].Failed = "two drives failed" })
		h.pass(testInterval * 11 / 10)
		h.wantState("a", v1alpha1.PoolFailed, v1alpha1.ConditionHealthy, "PoolFailed")
		if c := h.class("fast").Status; c.State != v1alpha1.ClassFailed {
			h.Errorf("the class is %s", c.State)
		}
		h.wantEvents("fast Warning Failed: failed pools: a", 1)
		if _, err := h.use("a"); err != nil {
			h.Errorf("what is on a failed pool cannot be changed: %v", err)
		}
	})
}

// TestVolumeGoesToAHealthyPoolWithRoom: at least one must be there, and the error says why for each that
// is not.
func TestVolumeGoesToAHealthyPoolWithRoom(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", func(s *v1alpha1.PoolClassSpec) {
			s.Default, s.Allocator, s.Protocol = true, v1alpha1.Linear, v1alpha1.ISCSI
			s.VolumeFlags = v1alpha1.VolumeFlags{Encrypt: true}
		})
		h.addPool("a", "fast").fails = array.ErrCredentials
		h.addPool("b", "fast").health.Pools[0].Available = 60 << 30
		h.addPool("c", "fast")
		full := h.addPool("d", "fast")
		full.health.Pools[0].Available, full.health.Pools[0].Mode = 50<<30, array.Normal
	}, func(h *testPools) {
		h.changePool("c", func(p *v1alpha1.Pool) { p.Spec.Unschedulable = true })
		_, err := h.reserve("v", "", 100)
		if !errors.Is(err, volume.ErrNoSpace) {
			h.Fatalf("the error is %v", err)
		}
		for _, want := range []string{"PoolClass fast", "100 GiB", "pool a: Unreachable: ", "pool b: the capacity mode is protected",
			"pool c: unschedulable", "pool d: 50 GiB free; 100 GiB are needed"} {
			if !strings.Contains(err.Error(), want) {
				h.Errorf("the error is %v, want %s", err, want)
			}
		}
		got, err := h.reserve("v", "", 30)
		if err != nil || got.Pool != "d" || got.Class != "fast" || got.Protocol != pools.ISCSI || !got.Encrypt {
			h.Errorf("reserved %+v, %v", got, err)
		}
		if again, err := h.reserve("v", "", 30); err != nil || again.Pool != "d" {
			h.Errorf("asked again: %+v, %v", again, err)
		}
		if _, err := h.reserve("w", "", 30); !errors.Is(err, volume.ErrNoSpace) {
			h.Errorf("two volumes take the same room: %v", err)
		}
		room, err := h.controller.Capacity(h.Context(), pools.Wanted{})
		if err != nil || room != (pools.Capacity{Available: 20 << 30, Largest: 20 << 30}) {
			h.Errorf("room for %+v, %v", room, err)
		}
	})
}

// TestRoomOfAMadeVolumeIsKeptUntilTheArrayCountsIt.
func TestRoomOfAMadeVolumeIsKeptUntilTheArrayCountsIt(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.addPool("a", "fast")
	}, func(h *testPools) {
		for _, made := range []bool{false, true} {
			if _, err := h.reserve("v", "fast", 800); err != nil {
				h.Fatal(err)
			}
			(&env.Environment{System: h.controller.System}).Release("v", made)
			h.pass(0)
			h.controller.Root.Send(h.controller.Single(poolmessages.ClassesName), &poolmessages.PoolReport{ // of a look before
				Name: "a", Class: "fast", Kind: pools.KindArray, State: v1alpha1.PoolReady, On: h.arrays["https://a"].health.Pools[0],
				Measured: time.Now().Add(-time.Second),
			})
			h.pass(0)
			_, err := h.reserve("w", "fast", 800)
			if made != errors.Is(err, volume.ErrNoSpace) {
				h.Errorf("made %v: %v", made, err)
			}
			(&env.Environment{System: h.controller.System}).Release("w", false)
			h.pass(0)
		}
		h.arrays["https://a"].change(func(a *testArray) { a.health.Pools[0].Available = 850 << 30 })
		h.pass(testInterval * 11 / 10)
		if _, err := h.reserve("w", "fast", 800); err != nil {
			h.Errorf("after the next look at the array: %v", err)
		}
	})
}

// TestRoomOfADeletedVolumeIsFree, also before the array was asked anew.
func TestRoomOfADeletedVolumeIsFree(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.addPool("a", "fast")
	}, func(h *testPools) {
		if _, err := h.reserve("v", "fast", 800); err != nil {
			h.Fatal(err)
		}
		(&env.Environment{System: h.controller.System}).Release("v", true)
		h.controller.Seen(poolmessages.PoolVolumeKind, aVolume("v", "a", 1_000_000))
		h.controller.Gone(poolmessages.PoolVolumeKind, "v")
		h.pass(0)
		if _, err := h.reserve("w", "fast", 800); err != nil {
			h.Error(err)
		}
	})
}

// TestOvercommitBoundsWhatIsPromised.
func TestOvercommitBoundsWhatIsPromised(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.addPool("a", "fast")
	}, func(h *testPools) {
		h.changePool("a", func(p *v1alpha1.Pool) { p.Spec.Overcommit = "0.5" })
		if _, err := h.reserve("v", "fast", 300); err != nil {
			h.Error(err)
		}
		const want = "500 GiB promised of at most 500 GiB"
		if _, err := h.reserve("w", "fast", 1); !errors.Is(err, volume.ErrNoSpace) || !strings.Contains(err.Error(), want) {
			h.Errorf("beyond: %v, want %s", err, want)
		}
	})
}

// TestClassThatIsNotThere is an error that names the field.
func TestClassThatIsNotThere(t *testing.T) {
	inPools(t, func(h *testPools) {
		for _, name := range []string{"one", "two"} {
			h.addClass(name, func(s *v1alpha1.PoolClassSpec) { s.Default = true })
		}
		h.addPool("a", "one")
	}, func(h *testPools) {
		for _, class := range []string{"none", ""} {
			if _, err := h.reserve("v", class, 1); !errors.Is(err, volume.ErrInvalid) {
				h.Errorf("class %q: %v", class, err)
			}
			if _, err := h.controller.Capacity(h.Context(), pools.Wanted{Class: class}); !errors.Is(err, volume.ErrNotFound) {
				h.Errorf("capacity of class %q: %v", class, err)
			}
		}
		_, err := ask(h, &poolmessages.ReservePool{Volume: "v", Class: "two", Pool: "a", Bytes: 1})
		if !errors.Is(err, volume.ErrInvalid) {
			h.Errorf("a copy in another class than its source: %v", err)
		}
	})
}

// TestClassWaitsForItsPools, and the default class for a person.
func TestClassWaitsForItsPools(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", func(s *v1alpha1.PoolClassSpec) { s.Default = true })
		h.addPool("a", "fast")
		h.addPool("b", "fast")
	}, func(h *testPools) {
		h.remove(&v1alpha1.PoolClass{}, "fast")
		h.wantEvents("fast Warning DeleteBlocked: it is the default class", 1)
		c := h.class("fast")
		c.Spec.Default = false
		if err := h.kube.Update(h.Context(), c); err != nil {
			h.Fatal(err)
		}
		h.pass(testInterval)
		h.wantEvents("fast Warning DeleteBlocked: it has 2 pools: a, b", 1)
		if got := h.class("fast").Status.State; got != v1alpha1.ClassDeleting {
			h.Errorf("the class is %s", got)
		}
		h.remove(&v1alpha1.Pool{}, "a")
		h.remove(&v1alpha1.Pool{}, "b")
		h.pass(testInterval)
		if h.exists(&v1alpha1.PoolClass{}, "fast") {
			h.Error("the class is still there")
		}
	})
}

// TestPoolWaitsForItsVolumes: an Event says what it waits for.
func TestPoolWaitsForItsVolumes(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addOurs(h.addPool("a", "fast"), "pvc-1")
	}, func(h *testPools) {
		h.pass(2 * testInterval)
		h.remove(&v1alpha1.Pool{}, "a")
		h.wantState("a", v1alpha1.PoolDeleting, v1alpha1.ConditionReady, "Deleting")
		h.wantEvents("a Warning DeleteBlocked: the pool has 1 volumes and 0 snapshots of Katbox", 1)
		h.pass(testInterval * 3)
		h.wantEvents("DeleteBlocked", 1)
		if _, err := h.use("a"); err != nil {
			h.Errorf("its last volumes cannot be deleted: %v", err)
		}
		v := get[v1alpha1.PoolVolume](h, "pvc-1") // as a task deletes it
		v.Finalizers = nil
		if err := h.kube.Update(h.Context(), v); err != nil {
			h.Fatal(err)
		}
		h.remove(v, "pvc-1")
		h.pass(testInterval)
		if h.exists(&v1alpha1.Pool{}, "a") {
			h.Error("the pool is still there")
		}
		if _, err := h.use("a"); !errors.Is(err, volume.ErrUnavailable) || !strings.Contains(err.Error(), "no Pool a") {
			h.Errorf("it can be used: %v", err)
		}
	})
}

// TestPoolThatIsGoneForEverCanBeForgotten: its resources go, and nothing on the array.
func TestPoolThatIsGoneForEverCanBeForgotten(t *testing.T) {
	inPools(t, func(h *testPools) {
		a := h.addPool("a", "fast")
		for i := range 3 {
			h.addOurs(a, fmt.Sprint("pvc-", i))
		}
	}, func(h *testPools) {
		a := h.arrays["https://a"]
		h.add(&v1alpha1.PoolAttachment{
			ObjectMeta: metaProtected("pvc-1.node"),
			Spec:       v1alpha1.PoolAttachmentSpec{VolumeName: "pvc-1", NodeName: "node", PoolName: "a", Protocol: v1alpha1.NFS},
			Status:     v1alpha1.PoolAttachmentStatus{State: v1alpha1.AttachmentReady},
		})
		a.change(func(a *testArray) { a.fails = array.ErrTimeout })
		h.remove(&v1alpha1.Pool{}, "a")
		h.pass(2 * testInterval)
		h.wantEvents("DeleteBlocked", 1)
		h.changePool("a", func(p *v1alpha1.Pool) { p.Annotations = map[string]string{v1alpha1.Forget: "true"} })
		h.pass(testInterval)
		if h.exists(&v1alpha1.Pool{}, "a") || h.exists(&v1alpha1.PoolVolume{}, "pvc-1") || h.exists(&v1alpha1.PoolAttachment{}, "pvc-1.node") {
			h.Errorf("something is left, after %q", h.events.list())
		}
		if len(a.volumes) != 3 || a.called("DeleteVolume") > 0 {
			h.Errorf("%d volumes are left on the array, after %d deletions", len(a.volumes), a.called("DeleteVolume"))
		}
	})
}

// TestPoolTakesItsExternalVolumesAlong: they are resources only.
func TestPoolTakesItsExternalVolumesAlong(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addVolume(h.addPool("a", "fast"), "plain", "", 1, false)
		h.changePool("a", func(p *v1alpha1.Pool) { p.Spec.VPSA.ManageExternal = true })
	}, func(h *testPools) {
		h.pass(testInterval)
		if !h.exists(&v1alpha1.PoolVolume{}, "a-plain") {
			h.Fatal("it was not imported")
		}
		h.remove(&v1alpha1.Pool{}, "a")
		h.pass(testInterval)
		if h.exists(&v1alpha1.Pool{}, "a") || h.exists(&v1alpha1.PoolVolume{}, "a-plain") {
			h.Errorf("something is left, after %q", h.events.list())
		}
		if len(h.arrays["https://a"].volumes) != 1 {
			h.Error("the volume on the array is gone")
		}
	})
}

// TestPoolWaitsForItsSnapshots that Katbox has taken of a volume of others.
func TestPoolWaitsForItsSnapshots(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addPool("a", "fast")
		h.add(&v1alpha1.PoolSnapshot{
			ObjectMeta: metaProtected("snapshot-1"), Spec: v1alpha1.PoolSnapshotSpec{VolumeName: "a-plain", PoolName: "a"},
			Status: v1alpha1.PoolSnapshotStatus{State: v1alpha1.SnapshotReady},
		})
	}, func(h *testPools) {
		h.remove(&v1alpha1.Pool{}, "a")
		h.pass(2 * testInterval)
		if !h.exists(&v1alpha1.Pool{}, "a") || !h.exists(&v1alpha1.PoolSnapshot{}, "snapshot-1") {
			h.Error("the snapshot is forgotten on the array")
		}
		h.wantEvents("a Warning DeleteBlocked: the pool has 0 volumes and 1 snapshots", 1)
	})
}

// TestPoolWaitsForVolumesThatAreBeingMade: such a one would have no pool.
func TestPoolWaitsForVolumesThatAreBeingMade(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.addPool("a", "fast")
	}, func(h *testPools) {
		if _, err := h.reserve("v", "fast", 1); err != nil {
			h.Fatal(err)
		}
		h.remove(&v1alpha1.Pool{}, "a")
		h.pass(2 * testInterval)
		if !h.exists(&v1alpha1.Pool{}, "a") {
			h.Fatal("the pool is gone")
		}
		if _, err := h.reserve("w", "fast", 1); !errors.Is(err, volume.ErrNoSpace) {
			h.Errorf("it takes another volume: %v", err)
		}
		(&env.Environment{System: h.controller.System}).Release("v", false)
		h.pass(2 * testInterval)
		if h.exists(&v1alpha1.Pool{}, "a") {
			h.Error("the pool is still there")
		}
	})
}
