package pool

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// verdict is one condition, as it was found last; the zero value is not known yet.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

func good(reason string) verdict { return verdict{metav1.ConditionTrue, reason, ""} }

func bad(reason, message string) verdict { return verdict{metav1.ConditionFalse, reason, message} }

func (v verdict) ok() bool { return v.status == metav1.ConditionTrue }

func (v verdict) failed() bool { return v.status == metav1.ConditionFalse }

// verdicts are all conditions of a pool but the one that sums them up.
type verdicts struct {
	reachable, compatible, configured, imported, healthy, capacity, suitable verdict
}

// state is the state of a pool, which nothing but its conditions decides. A pool that is nearly full is
// Ready: it takes no new volumes, and that is all.
func (v verdicts) state(deleting bool) v1alpha1.PoolState {
	switch {
	case deleting:
		return v1alpha1.PoolDeleting
	case v.reachable.failed():
		return v1alpha1.PoolUnreachable
	case !v.reachable.ok():
		return v1alpha1.PoolConfiguring
	case v.compatible.failed():
		return v1alpha1.PoolIncompatible
	case !v.compatible.ok() || !v.configured.ok():
		return v1alpha1.PoolConfiguring
	case !v.imported.ok():
		return v1alpha1.PoolImporting
	case v.healthy.failed():
		return v1alpha1.PoolFailed
	}
	return v1alpha1.PoolReady
}

// reason says why a pool is in its state, for people; empty for one that is Ready.
func (v verdicts) reason(state v1alpha1.PoolState) string {
	switch state {
	case v1alpha1.PoolUnreachable:
		return v.reachable.message
	case v1alpha1.PoolIncompatible:
		return v.compatible.message
	case v1alpha1.PoolConfiguring:
		return v.configured.message
	case v1alpha1.PoolImporting:
		return v.imported.message
	case v1alpha1.PoolFailed:
		return v.healthy.message
	}
	return ""
}

// usable reports whether something on the array may be changed.
func (v verdicts) usable() bool {
	return v.reachable.ok() && v.compatible.ok() && v.configured.ok() && v.imported.ok()
}

// conditions returns the conditions, with the times of those that have not changed.
func (v verdicts) conditions(before []metav1.Condition, generation int64, deleting bool) []metav1.Condition {
	after := append([]metav1.Condition(nil), before...)
	set := func(name string, v verdict) {
		if v.status == "" {
			v = verdict{metav1.ConditionUnknown, "NotYet", "not looked at yet"}
		}
		meta.SetStatusCondition(&after, metav1.Condition{
			Type: name, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: generation,
		})
	}
	set(v1alpha1.ConditionReachable, v.reachable)
	set(v1alpha1.ConditionCompatible, v.compatible)
	set(v1alpha1.ConditionConfigured, v.configured)
	set(v1alpha1.ConditionImported, v.imported)
	set(v1alpha1.ConditionHealthy, v.healthy)
	set(v1alpha1.ConditionCapacityHealthy, v.capacity)
	set(v1alpha1.ConditionSuitable, v.suitable)
	ready := good("Ready")
	if state := v.state(deleting); state != v1alpha1.PoolReady {
		ready = bad(string(state), v.reason(state))
	}
	set(v1alpha1.ConditionReady, ready)
	return after
}

// known returns what an earlier run has found of a pool, as far as it still holds: the settings and the
// import, of the array and the generation that the status tells.
func known(p *v1alpha1.Pool) (v verdicts) {
	read := func(name string) verdict {
		c := meta.FindStatusCondition(p.Status.Conditions, name)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != p.Generation {
			return verdict{}
		}
		return verdict{c.Status, c.Reason, c.Message}
	}
	v.configured, v.imported = read(v1alpha1.ConditionConfigured), read(v1alpha1.ConditionImported)
	return v
}
