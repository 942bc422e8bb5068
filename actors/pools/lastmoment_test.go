package pools

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/pools"
	"github.com/katbox/katbox/internal/pools/v1alpha1"
	"github.com/katbox/katbox/messages"
)

// keepLonger is what a person does with a retained volume.
func (h *testPools) keepLonger(name string, lifespan time.Duration) {
	h.Helper()
	v := get[v1alpha1.PoolVolume](h, name)
	v.Spec.Lifespan = &metav1.Duration{Duration: lifespan}
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
		_, err := actors.Ask(h.Context(), h.controller.Root, h.controller.Supervisor(), &messages.EndRetained{
			Routing: routing(h.Context(), kindVolume, "a"), Name: "a", Since: since, Lifespan: 24 * time.Hour, Reason: pools.Expired, Why: "a test",
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
