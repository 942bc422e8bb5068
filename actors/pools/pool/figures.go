package pool

import (
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

func thresholdsOf(t v1alpha1.CapacityThresholds) poolmessages.Thresholds {
	return poolmessages.Thresholds{Alert: rules.ParseShare(t.Alert, 0.2), Emergency: rules.ParseShare(t.Emergency, 0.05)}
}

// figures is how the pool is.
func (p *poolActor) figures() *poolmessages.PoolReport {
	state := p.state(p.object.DeletionTimestamp != nil)
	f := &poolmessages.PoolReport{
		Name: p.name, Class: p.object.Spec.ClassName, State: state, On: p.last.on, Mode: p.mode, Counts: p.counts, Measured: p.last.began,
		Overcommit: rules.ParseShare(p.object.Spec.Overcommit, 0), Kind: rules.KindOfPool(p.object),
		Thresholds: thresholdsOf(p.object.Spec.CapacityThresholds),
	}
	f.Needs = p.abilities()
	if on := p.object.Spec.Local; on != nil {
		promiseOnce(f, on, p.last.health.Disk)
	}
	switch {
	case state != v1alpha1.PoolReady:
		f.Refuses = string(state)
		if why := p.reason(state); why != "" {
			f.Refuses += ": " + why
		}
	case p.object.Spec.Unschedulable:
		f.Refuses = "unschedulable, by its spec"
	case p.mode != array.Normal && f.Kind == pools.KindArray:
		f.Refuses, f.Full = p.capacity.message, true
	}
	return f
}

// defaultHeadroom is the share of a node's disk that is promised to no volume where the Pool does not say.
const defaultHeadroom = 0.1

// promiseOnce: a pool on a node promises what it has, without the headroom, and once at most.
func promiseOnce(f *poolmessages.PoolReport, on *v1alpha1.LocalPool, disk array.Disk) {
	f.UUID, f.Disk = on.UUID, disk
	f.Headroom = int64(rules.ParseShare(on.Headroom, defaultHeadroom) * float64(f.On.Total))
	if f.Overcommit == 0 || f.Overcommit > 1 {
		f.Overcommit = 1
	}
}
