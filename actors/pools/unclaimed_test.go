package pools

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// wantUnclaimed fails the test unless these volumes were told of since the last time.
func (h *testPools) wantUnclaimed(when string, want ...string) {
	h.Helper()
	h.events.mu.Lock()
	all := h.events.all
	h.events.all = nil
	h.events.mu.Unlock()
	var got []string
	for _, line := range all {
		if name, text, ok := strings.Cut(line, " Warning Unclaimed: "); ok {
			got = append(got, name)
			if !strings.Contains(text, "the disk of pool ") || !strings.Contains(text, "delete PoolVolume "+name+";") {
				h.Errorf("%s: the event of %s says %s", when, name, text)
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		h.Errorf("%s: told of %q, want %q", when, got, want)
	}
}

// wantCounted fails the test unless the looks since the last call have found these numbers of volumes, one number each.
func (h *testPools) wantCounted(when string, want ...int) {
	h.Helper()
	h.unclaimed.mu.Lock()
	defer h.unclaimed.mu.Unlock()
	if got := h.unclaimed.each; !slices.Equal(got, want) {
		h.Errorf("%s: %d volumes are counted, want %d", when, got, want)
	}
	h.unclaimed.each = nil
}

// TestVolumeLeftBehind: a volume whose claim went before its PersistentVolume was made is told of, and no other one is.
func TestVolumeLeftBehind(t *testing.T) {
	const late = "pvc-0f9e2d11-5d0a-4d6c-9c57-3f0d8c1b2a77"
	inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
		one := nodeWith(disk1)
		h.connects("n1", one)
		has := func(name, handle string, phase corev1.PersistentVolumePhase, policy corev1.PersistentVolumeReclaimPolicy) {
			pv := persistentVolume(name, handle, nil)
			pv.Spec.PersistentVolumeReclaimPolicy, pv.Status.Phase = policy, phase
			if err := h.kube.Create(h.Context(), pv); err != nil {
				h.Fatal(err)
			}
		}
		const keeps, deletes = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete
		for _, name := range []string{"claimed", "bound", "byhand", "going", "kept", "left"} {
			h.bindLocal(name, 1, []string{disk1})
		}
		has("bound", "bound", corev1.VolumeBound, deletes)
		for _, name := range []string{"byhand", "going", "left"} {
			dropClaim(h.T, h.kube, "ns", name)
		}
		has("made-by-a-person", "byhand", corev1.VolumeReleased, keeps)
		has("going", "going", corev1.VolumeReleased, deletes)
		h.retainLocal("kept")
		// The claim goes before the provisioner asks.
		if _, err := h.local().CreateVolume(h.Context(), newLocal(late, 1, []string{disk1})); err != nil {
			h.Fatal(err)
		}
		h.pass(firstSweep - time.Minute)
		h.bindLocal("young", 1, []string{disk1})
		dropClaim(h.T, h.kube, "ns", "young")
		h.wantUnclaimed("before")
		h.wantCounted("before")
		h.pass(2 * time.Minute)
		h.wantUnclaimed("first", "left", late)
		h.wantCounted("first", 2)
		h.pass(nextSweep)
		h.wantUnclaimed("on the next day", "left", late, "young")
		h.wantCounted("on the next day", 3)

		// The next controller tells of them, too; what the event says to do helps.
		h.stop()
		h.start()
		h.connects("n1", one)
		h.pass(firstSweep + time.Minute)
		h.wantUnclaimed("after a restart", "left", late, "young")
		h.wantCounted("after a restart", 3)
		has("again", "young", corev1.VolumeAvailable, keeps)
		for _, name := range []string{"left", late} {
			if err := h.kube.Delete(h.Context(), get[v1alpha1.PoolVolume](h, name)); err != nil {
				h.Error(err)
			}
		}
		synctest.Wait()
		h.wantOn("deleted", one, disk1, "bound byhand claimed going young")
		h.pass(nextSweep)
		h.wantUnclaimed("in the end")
		h.wantCounted("in the end", 0)
	})
}

// TestManyLeftBehind: they are told of one after the other, since what records events has room for a few.
func TestManyLeftBehind(t *testing.T) {
	inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
		h.connects("n1", nodeWith(disk1))
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprintf("left-%02d", i))
			h.bindLocal(names[i], 1, []string{disk1})
			dropClaim(h.T, h.kube, "ns", names[i])
		}
		h.pass(firstSweep - time.Minute)
		h.events.mu.Lock()
		h.events.at = nil
		h.events.mu.Unlock()
		h.pass(2 * time.Minute)
		h.wantUnclaimed("first", names...)
		h.events.mu.Lock()
		defer h.events.mu.Unlock()
		for _, n := range h.events.at {
			if n > 1 {
				h.Errorf("%d events at once", n)
			}
		}
	})
}
