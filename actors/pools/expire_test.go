package pools

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// bind makes a volume for a claim of ns.
func (h *testPools) bind(name string, size int64, annotations map[string]string) {
	h.Helper()
	addClaim(h.T, h.kube, "ns", name, annotations)
	if _, err := h.controller.CreateVolume(h.Context(), newVolume(name, size, false)); err != nil {
		h.Fatal(err)
	}
	synctest.Wait()
}

// retain deletes the claim of a volume, which stays.
func (h *testPools) retain(name string) {
	h.Helper()
	dropClaim(h.T, h.kube, "ns", name)
	if err := h.controller.DeleteVolume(h.Context(), name); err != nil {
		h.Fatal(err)
	}
	synctest.Wait()
}

// wantVolumes fails the test unless the array and the resources have these volumes, as name:state.
func (h *testPools) wantVolumes(when string, a *testArray, want ...string) {
	h.Helper()
	list := &v1alpha1.PoolVolumeList{}
	if err := h.kube.List(h.Context(), list); err != nil {
		h.Fatal(err)
	}
	var got []string
	for i := range list.Items {
		got = append(got, list.Items[i].Name+":"+string(list.Items[i].Status.State))
	}
	a.memArray.mu.Lock()
	on := len(a.volumes)
	a.memArray.mu.Unlock()
	if strings.Join(got, " ") != strings.Join(want, " ") || on != len(want) {
		h.Errorf("%s: %q, and %d on the array; want %q", when, got, on, want)
	}
}

func oneClass(lifespan time.Duration) func(*v1alpha1.PoolClassSpec) {
	return func(s *v1alpha1.PoolClassSpec) { s.Default, s.Lifespan = true, rules.LifespanToSpec(lifespan) }
}

// TestRetainedVolumeExpires when its lifespan is over, also one that is retained when the controller starts.
func TestRetainedVolumeExpires(t *testing.T) {
	var a *testArray
	inPools(t, func(h *testPools) {
		h.addClass("fast", oneClass(24*time.Hour))
		a = h.addPool("a", "fast")
	}, func(h *testPools) {
		h.bind("pvc-1", 2, nil)
		h.bind("pvc-2", 3, wants("3h"))
		h.bind("pvc-3", 4, wants("0s"))
		for _, name := range []string{"pvc-1", "pvc-2", "pvc-3"} {
			h.retain(name)
		}
		h.wantVolumes("at first", a, "pvc-1:Retained", "pvc-2:Retained")
		h.pass(2 * testInterval)
		if p := h.pool("a").Status; p.Counters.Volumes != 2 || p.Counters.Retained != 2 || p.Capacity.Retained.Value() != 5<<30 {
			h.Errorf("the pool has %+v and %+v", p.Counters, p.Capacity)
		}
		if c := h.class("fast").Status; c.Counters.Retained != 2 || c.Capacity.Retained.Value() != 5<<30 {
			h.Errorf("the class has %+v and %+v", c.Counters, c.Capacity)
		}
		h.pass(2*time.Hour + 55*time.Minute)
		h.wantVolumes("before the first deadline", a, "pvc-1:Retained", "pvc-2:Retained")
		h.pass(5 * time.Minute)
		h.wantVolumes("after the first deadline", a, "pvc-1:Retained")
		h.wantEvents("pvc-2 Normal Expired: the retained data of the claim ns/pvc-2 (volume pvc-2, 3Gi) are deleted: "+
			"its lifespan of 3h is over", 2)
		h.stop()
		h.pass(20 * time.Hour)
		h.start()
		h.pass(30 * time.Minute)
		h.wantVolumes("after a restart", a, "pvc-1:Retained")
		h.pass(time.Hour)
		h.wantVolumes("after the second deadline", a)
		h.pass(2 * testInterval)
		if p := h.pool("a").Status; p.Counters.Retained != 0 || p.Capacity.Retained.Value() != 0 {
			h.Errorf("the pool has %+v and %+v", p.Counters, p.Capacity)
		}
	})
}

// TestExpiryWaitsForAnArrayThatIsAway.
func TestExpiryWaitsForAnArrayThatIsAway(t *testing.T) {
	var a *testArray
	inPools(t, func(h *testPools) {
		h.addClass("fast", oneClass(time.Hour))
		a = h.addPool("a", "fast")
	}, func(h *testPools) {
		h.bind("pvc-1", 2, nil)
		h.retain("pvc-1")
		a.change(func(a *testArray) { a.fails = array.ErrUnreachable })
		h.pass(3 * time.Hour)
		h.wantVolumes("while it is away", a, "pvc-1:Retained")
		a.change(func(a *testArray) { a.fails = nil })
		h.pass(5 * time.Minute)
		h.wantVolumes("when it is back", a)
	})
}

// sized is a pool of some GiB on an array that says what is free, as an array does whose volumes are thick.
func (h *testPools) sized(name string, total int64) *testArray {
	h.Helper()
	a := h.addPool(name, "fast")
	a.room = array.Size(total) * array.GiB
	a.measures = total
	return a
}

// retainOneByOne retains volumes of some GiB, pvc-0 first. The array says between them what is free.
func (h *testPools) retainOneByOne(volumes int, gib int64) {
	h.Helper()
	for i := range volumes {
		name := fmt.Sprint("pvc-", i)
		h.bind(name, gib, nil)
		h.pass(testInterval)
		h.retain(name)
		h.pass(time.Minute)
	}
}

// TestRoomIsMadeForNewVolumes: the oldest retained ones go, just enough.
func TestRoomIsMadeForNewVolumes(t *testing.T) {
	var a *testArray
	inPools(t, func(h *testPools) {
		h.addClass("fast", oneClass(24*time.Hour))
		a = h.sized("a", 100)
	}, func(h *testPools) {
		h.retainOneByOne(4, 15)
		if got, err := h.controller.CreateVolume(h.Context(), newVolume("new", 60, false)); err != nil || got.Size != 60<<30 {
			h.Fatalf("made %+v, %v", got, err)
		}
		h.wantVolumes("then", a, "new:Ready", "pvc-2:Retained", "pvc-3:Retained")
		h.wantEvents("Evicted: the retained data of the claim ns/pvc-0", 2)
		h.wantEvents("a new volume, new, needs the room in pool a", 4)
		// Two at the same time do not take the same room.
		made := make(chan error, 2)
		for _, name := range []string{"x", "y"} {
			go func() {
				_, err := h.controller.CreateVolume(h.Context(), newVolume(name, 20, false))
				made <- err
			}()
		}
		one, two := <-made, <-made
		if one != nil || two != nil {
			h.Errorf("made: %v, %v", one, two)
		}
		h.wantVolumes("then", a, "new:Ready", "x:Ready", "y:Ready")
		_, err := h.controller.CreateVolume(h.Context(), newVolume("z", 20, false))
		if !errors.Is(err, volume.ErrNoSpace) {
			h.Errorf("with nothing left to evict: %v", err)
		}
	})
}

// TestRoomIsMadeWhereTheArrayRefuses although it has said that there is room.
func TestRoomIsMadeWhereTheArrayRefuses(t *testing.T) {
	var a *testArray
	inPools(t, func(h *testPools) {
		h.addClass("fast", oneClass(24*time.Hour))
		a = h.addPool("a", "fast") // says that 900 GiB are free
		a.room = 100 * array.GiB
	}, func(h *testPools) {
		for i := range 4 {
			h.bind(fmt.Sprint("pvc-", i), 20, nil)
			h.retain(fmt.Sprint("pvc-", i))
			h.pass(time.Minute)
		}
		if _, err := h.controller.CreateVolume(h.Context(), newVolume("new", 55, false)); err != nil {
			h.Fatal(err)
		}
		h.wantVolumes("then", a, "new:Ready", "pvc-3:Retained")
		_, err := h.controller.CreateVolume(h.Context(), newVolume("huge", 500, false))
		if !errors.Is(err, volume.ErrNoSpace) {
			h.Errorf("what cannot fit: %v", err)
		}
	})
}

// TestRoomIsMadeForGrowth: the oldest retained volumes of the pool go, just enough; none where all of them do not suffice.
func TestRoomIsMadeForGrowth(t *testing.T) {
	var a *testArray
	inPools(t, func(h *testPools) {
		h.addClass("fast", oneClass(24*time.Hour))
		a = h.sized("a", 100)
	}, func(h *testPools) {
		h.retainOneByOne(4, 15)
		if _, err := h.controller.CreateVolume(h.Context(), newVolume("v", 20, false)); err != nil {
			h.Fatal(err)
		}
		h.pass(2 * testInterval)
		if _, err := h.controller.GrowVolume(h.Context(), "v", 101*gib, 0); !errors.Is(err, volume.ErrNoSpace) {
			h.Errorf("grow to more than there is: %v", err)
		}
		h.wantVolumes("refused", a, "pvc-0:Retained", "pvc-1:Retained", "pvc-2:Retained", "pvc-3:Retained", "v:Ready")
		if got, err := h.controller.GrowVolume(h.Context(), "v", 60*gib, 0); err != nil || got.Size != 60*gib {
			h.Fatalf("grew to %+v, %v", got, err)
		}
		h.wantVolumes("then", a, "pvc-2:Retained", "pvc-3:Retained", "v:Ready")
		h.wantEvents("volume v needs the room in pool a to grow", 4)
	})
}

// TestPressureEvicts the oldest first, and as much as is short.
func TestPressureEvicts(t *testing.T) {
	var a *testArray
	inPools(t, func(h *testPools) {
		h.addClass("fast", oneClass(24*time.Hour))
		a = h.sized("a", 1000)
	}, func(h *testPools) {
		for i := range 6 {
			h.bind(fmt.Sprint("pvc-", i), 50, nil)
			h.retain(fmt.Sprint("pvc-", i))
			h.pass(time.Hour)
		}
		a.change(func(a *testArray) { a.others = 630 * array.GiB }) // 70 GiB are free: 13% of lifespans are left
		h.pass(2 * testInterval)
		h.wantVolumes("under pressure", a, "pvc-3:Retained", "pvc-4:Retained", "pvc-5:Retained")
		h.wantEvents("pool a is nearly full, which leaves", 6)
	})
}

// TestRetainedVolumeComesBackWithItsComment after its resource was lost; one that is used is Ready.
func TestRetainedVolumeComesBackWithItsComment(t *testing.T) {
	var a *testArray
	kept := pools.Retention{}
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		a = h.addPool("a", "fast")
		now := time.Now().UTC().Truncate(time.Second)
		kept = pools.Retention{Since: now.Add(-time.Hour), Until: now.Add(time.Hour)}
		comment := pools.NewComment(testCluster, pools.Claim{Namespace: "ns", Name: "data"})
		comment.ClaimUID, comment.NamespaceUID, comment.Retained = "claim-uid", "ns-uid", &kept
		h.addVolume(a, "pvc-1", comment.String(), 10*array.GiB, false)
		h.addVolume(a, "pvc-2", comment.String(), 10*array.GiB, false)
		h.add(persistentVolume("static", "pvc-2", nil))
	}, func(h *testPools) {
		v := get[v1alpha1.PoolVolume](h, "pvc-1")
		if s := v.Status; s.State != v1alpha1.VolumeRetained || !s.RetainedSince.Time.Equal(kept.Since) ||
			!s.RetainedUntil.Time.Equal(kept.Until) ||
			v.Spec.ClaimRef.UID != "claim-uid" || v.Spec.ClaimRef.NamespaceUID != "ns-uid" {
			h.Errorf("imported as %+v, %+v", v.Spec, v.Status)
		}
		h.pass(2 * testInterval)
		if v := get[v1alpha1.PoolVolume](h, "pvc-1"); v.Spec.Lifespan == nil || v.Spec.Lifespan.Duration != 2*time.Hour {
			h.Errorf("its lifespan is %v", v.Spec.Lifespan)
		}
		h.wantVolumes("imported", a, "pvc-1:Retained", "pvc-2:Ready")
		h.pass(2 * time.Hour)
		h.wantVolumes("later", a, "pvc-2:Ready")
	})
}

// TestRetainedVolumeThatVanishes from its array takes its resource along.
func TestRetainedVolumeThatVanishes(t *testing.T) {
	var a *testArray
	inPools(t, func(h *testPools) {
		h.addClass("fast", oneClass(24*time.Hour))
		a = h.addPool("a", "fast")
	}, func(h *testPools) {
		h.bind("pvc-1", 2, nil)
		h.retain("pvc-1")
		if err := a.DeleteVolume(h.Context(), get[v1alpha1.PoolVolume](h, "pvc-1").Status.ID); err != nil {
			h.Fatal(err)
		}
		h.pass(10 * time.Minute)
		h.wantVolumes("then", a)
		h.wantEvents("Vanished: the retained data of the claim ns/pvc-1", 2)
	})
}

// TestPoolWithRetainedVolumesStays until they are gone.
func TestPoolWithRetainedVolumesStays(t *testing.T) {
	var a *testArray
	inPools(t, func(h *testPools) {
		h.addClass("fast", oneClass(time.Hour))
		a = h.addPool("a", "fast")
	}, func(h *testPools) {
		h.bind("pvc-1", 2, nil)
		h.retain("pvc-1")
		h.remove(&v1alpha1.Pool{}, "a")
		h.pass(2 * testInterval)
		h.wantEvents("the pool has 1 volumes (1 of them retained) and 0 snapshots of Katbox, and 0 attachments; "+
			"delete the claims and the PoolVolumes that are Retained", 1)
		h.pass(2 * time.Hour)
		h.wantVolumes("after its lifespan", a)
		if h.exists(&v1alpha1.Pool{}, "a") {
			h.Error("the pool is still there")
		}
	})
}
