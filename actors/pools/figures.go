package pools

import (
	"time"

	"github.com/katbox/katbox/internal/array"
	"github.com/katbox/katbox/internal/pools"
	"github.com/katbox/katbox/internal/pools/v1alpha1"
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
	counts     poolCounts
	// measured is when the array was asked for these numbers: what was made before is in them.
	measured time.Time
}

// poolMember tells the classes that there is a pool. Supervisor -> classes.
type poolMember struct{ pool, class string }

// poolGone tells the classes that there is no such pool any more. Supervisor -> classes.
type poolGone struct{ name string }

// figures is how the pool is.
func (p *poolActor) figures() *poolIs {
	state := p.state(p.object.DeletionTimestamp != nil)
	f := &poolIs{
		name: p.name, class: p.object.Spec.ClassName, state: state, on: p.last.on, mode: p.mode, counts: p.counts, measured: p.last.began,
		overcommit: share(p.object.Spec.Overcommit, 0),
	}
	switch {
	case state != v1alpha1.PoolReady:
		f.refuses = string(state)
		if why := p.reason(state); why != "" {
			f.refuses += ": " + why
		}
	case p.object.Spec.Unschedulable:
		f.refuses = "unschedulable, by its spec"
	case p.mode != array.Normal:
		f.refuses = p.capacity.message
	}
	return f
}

// starts reports whether it is not known yet what the pool takes: its array is to be asked, or compared.
func (f *poolIs) starts() bool {
	return f.state == "" || f.state == v1alpha1.PoolConfiguring || f.state == v1alpha1.PoolImporting
}

// candidate is the pool for the allocator, with what was promised since the array was asked.
func (f *poolIs) candidate(reserved int64, making int) pools.Candidate {
	refuses := f.refuses
	if f.state == "" {
		refuses = "it has not been looked at yet"
	}
	return pools.Candidate{
		Name: f.name, Refuses: refuses, Total: f.on.Total, Available: f.on.Available, Provisioned: f.on.Provisioned,
		Reserved: reserved, Volumes: f.counts.managed + f.counts.external + making, Overcommit: f.overcommit,
	}
}
