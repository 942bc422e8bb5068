package pools

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// keepLonger is what a person does with a retained volume.
func (h *testPools) keepLonger(name string, lifespan time.Duration) {
	h.Helper()
	v := get[v1alpha1.PoolVolume](h, name)
	v.Spec.Lifespan = &v1alpha1.Duration{Duration: lifespan}
	if err := h.kube.Update(h.Context(), v); err != nil {
		h.Error(err)
	}
}

// TestPersonKeepsAVolumeAtTheLastMoment: what the API server has taken holds, whatever was decided before.
func TestPersonKeepsAVolumeAtTheLastMoment(t *testing.T) {
	inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
		one := nodeWith(disk1)
		h.connects("n1", one)
		for _, name := range []string{"a", "b"} {
			h.bindLocal(name, 10, []string{disk1})
			h.retainLocal(name)
		}
		// It was decided before the patch that a goes.
		since := get[v1alpha1.PoolVolume](h, "a").Status.RetainedSince.Time
		h.keepLonger("a", 48*time.Hour)
		synctest.Wait()
		_, err := actors.Ask(h.Context(), h.controller.Root, h.controller.Supervisor(), &poolmessages.EndRetained{
			Routing: messages.RoutingTo(h.Context(), rules.KindVolume, "a"), Name: "a",
			Since: since, Lifespan: 24 * time.Hour, Reason: pools.Expired,
			Why: "a test",
		})
		if err == nil {
			h.Error("it went")
		}
		h.wantOn("kept longer", one, disk1, "a* b*")

		// The patch of b comes between the look at it and the decision.
		once := true
		h.kube.mu.Lock()
		h.kube.before = func(o client.Object) {
			if v, ok := o.(*v1alpha1.PoolVolume); ok && once && v.Name == "b" && v.Status.State == v1alpha1.VolumeDeleting {
				once = false
				h.keepLonger("b", 48*time.Hour)
			}
		}
		h.kube.mu.Unlock()
		h.pass(25 * time.Hour)
		if once {
			h.Error("it was not to go")
		}
		h.wantOn("kept longer at the last moment", one, disk1, "a* b*")
		h.pass(25 * time.Hour)
		h.wantOn("then", one, disk1, "")
	})
}

// TestLifespanWithAFraction of a second ends too: times in resources have whole seconds.
func TestLifespanWithAFraction(t *testing.T) {
	inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
		one := nodeWith(disk1)
		h.connects("n1", one)
		h.bindLocal("a", 10, []string{disk1})
		h.keepLonger("a", 3*time.Hour+500*time.Millisecond)
		h.retainLocal("a")
		h.pass(3 * time.Hour)
		h.wantOn("until its last second", one, disk1, "a*")
		h.pass(time.Minute)
		h.wantOn("then", one, disk1, "")
	})
}

// TestLateDeletionOfARestoredVolume: the call is about the claim that had it before, and the next one has no
// PersistentVolume yet.
func TestLateDeletionOfARestoredVolume(t *testing.T) {
	inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
		one := nodeWith(disk1)
		h.connects("n1", one)
		h.bindLocal("v1", 10, []string{disk1})
		h.retainLocal("v1")
		annotations := restores("v1")
		annotations[v1alpha1.LifespanAnnotation] = "0s" // it is not to be retained again
		addClaim(h.T, h.kube, "ns", "v2", annotations)
		if got, err := h.local().CreateVolume(h.Context(), newLocal("v2", 10, []string{disk1})); err != nil || got.ID != "v1" {
			h.Fatalf("restored %+v, %v", got, err)
		}
		if err := h.local().DeleteVolume(h.Context(), "v1"); !errors.Is(err, pools.ErrInUse) {
			h.Errorf("deleted: %v", err)
		}
		h.wantOn("then", one, disk1, "v1")
		dropClaim(h.T, h.kube, "ns", "v2")
		if err := h.local().DeleteVolume(h.Context(), "v1"); err != nil {
			h.Error(err)
		}
		h.wantOn("at last", one, disk1, "")
	})
}

// TestLatestOfOneSecond is what was retained last, by times in seconds.
func TestLatestOfOneSecond(t *testing.T) {
	inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
		one := nodeWith(disk1)
		h.connects("n1", one)
		h.bindLocal("v1", 10, []string{disk1})
		h.bindLocal("v2", 10, []string{disk1})
		h.retainLocal("v1")
		h.retainLocal("v2")
		addClaim(h.T, h.kube, "ns", "again", restores("latest"))
		if got, err := h.local().CreateVolume(h.Context(), newLocal("again", 10, []string{disk1})); err != nil || got.ID != "v2" {
			h.Errorf("restored %+v, %v", got, err)
		}
	})
}
