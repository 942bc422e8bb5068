package pool

import (
	"github.com/asynkron/protoactor-go/actor"
	corev1 "k8s.io/api/core/v1"

	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// tell reports a state that is new as an Event, and how the pool is to the classes.
func (p *poolActor) tell(c actor.Context) {
	deleting := p.object.DeletionTimestamp != nil
	state := p.state(deleting)
	why := p.reason(state)
	if p.reachable.status == "" && !deleting {
		return // it has not been looked at yet
	}
	if state != p.told || why != p.toldWhy && state != v1alpha1.PoolImporting {
		kind := corev1.EventTypeNormal
		if state == v1alpha1.PoolUnreachable || state == v1alpha1.PoolIncompatible || state == v1alpha1.PoolFailed {
			kind = corev1.EventTypeWarning
		}
		p.Resources.Events.Event(p.object, kind, string(state), eventText(state, why))
		p.told, p.toldWhy = state, why
	}
	if p.mode != p.toldMode && p.capacity.status != "" {
		if p.capacity.failed() {
			p.Resources.Events.Event(p.object, corev1.EventTypeWarning, "CapacityAlert", p.capacity.message)
		} else if p.toldMode != "" {
			p.Resources.Events.Event(p.object, corev1.EventTypeNormal, "CapacityNormal", "the capacity mode is normal again")
		}
		p.toldMode = p.mode
	}
	c.Send(p.Single(poolmessages.ClassesName), p.figures())
}

// portalSeen says that the array has moved: its volumes are reached elsewhere then, and a comparison begins.
func (p *poolActor) portalSeen(before, now string) {
	if before == "" || now == "" || before == now {
		return
	}
	p.Resources.Events.Event(p.object, corev1.EventTypeNormal, "PortalMoved", "the array is at "+now+", and was at "+before+
		"; what is attached to nodes is mounted from there by the next pods")
}

func eventText(state v1alpha1.PoolState, why string) string {
	if why != "" {
		return why
	}
	return "the pool is " + string(state)
}
