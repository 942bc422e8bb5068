package pools

import (
	"time"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// poolIs tells the classes how a pool is, after each look at its array. Pool -> classes.
type poolIs struct {
	name, class string
	state       v1alpha1.PoolState
	// refuses says why it takes no new volumes; empty when it takes some.
	refuses    string
	on         array.Pool
	mode       array.Mode
	overcommit float64
	// headroom is bytes that are promised to no volume.
	headroom int64
	// kind tells a pool on an array from one on a disk of a node, which has a UUID.
	kind       pools.Kind
	uuid       string
	disk       array.Disk
	thresholds thresholds
	// full: it takes none because of its mode alone.
	full   bool
	counts poolCounts
	// needs has what the pool lacks for some volumes.
	needs abilities
	// measured is when the array was asked for these numbers: what was made before is in them.
	measured time.Time
}

// thresholds are free shares of a pool, between which lifespans shorten.
type thresholds struct{ alert, emergency float64 }

func thresholdsOf(t v1alpha1.CapacityThresholds) thresholds {
	return thresholds{alert: share(t.Alert, 0.2), emergency: share(t.Emergency, 0.05)}
}

// poolMember tells the classes that there is a pool. Supervisor -> classes.
type poolMember struct {
	pool, class string
	kind        pools.Kind
	// uuid is that of a pool on a node.
	uuid string
}

// poolGone tells the classes that there is no such pool any more. Supervisor -> classes.
type poolGone struct{ name string }

// figures is how the pool is.
func (p *poolActor) figures() *poolIs {
	state := p.state(p.object.DeletionTimestamp != nil)
	f := &poolIs{
		name: p.name, class: p.object.Spec.ClassName, state: state, on: p.last.on, mode: p.mode, counts: p.counts, measured: p.last.began,
		overcommit: share(p.object.Spec.Overcommit, 0), kind: kindOfPool(p.object), thresholds: thresholdsOf(p.object.Spec.CapacityThresholds),
	}
	f.needs = p.abilities()
	if on := p.object.Spec.Local; on != nil {
		promiseOnce(f, on, p.last.health.Disk)
	}
	switch {
	case state != v1alpha1.PoolReady:
		f.refuses = string(state)
		if why := p.reason(state); why != "" {
			f.refuses += ": " + why
		}
	case p.object.Spec.Unschedulable:
		f.refuses = "unschedulable, by its spec"
	case p.mode != array.Normal && f.kind == pools.KindArray:
		f.refuses, f.full = p.capacity.message, true
	}
	return f
}

// starts reports whether it is not known yet what the pool takes: its array is to be asked, or compared.
func starts(f *poolIs) bool {
	return f.state == "" || f.state == v1alpha1.PoolConfiguring || f.state == v1alpha1.PoolImporting
}

// candidateOf is the pool for the allocator, with what was promised since the array was asked.
func candidateOf(f *poolIs, reserved int64, making int) pools.Candidate {
	refuses := f.refuses
	if f.state == "" {
		refuses = "it has not been looked at yet"
	}
	return pools.Candidate{
		Name: f.name, Refuses: refuses, Full: f.full, Total: f.on.Total, Available: f.on.Available, Provisioned: f.on.Provisioned,
		Headroom: f.headroom,
		Reserved: reserved, Volumes: f.counts.managed + f.counts.external + making, Overcommit: f.overcommit,
	}
}
