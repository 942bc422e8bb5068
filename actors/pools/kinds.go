package pools

import (
	"fmt"
	"slices"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

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

// groups returns the pools of a class that may take a volume, the best first. Pools of the other kind take none.
func (k *classes) groups(c *v1alpha1.PoolClass, m *poolmessages.ReservePool) (groups [][]*poolmessages.PoolReport, err error) {
	wants := m.Kind
	if wants == "" {
		wants = pools.KindArray
	}
	var all []*poolmessages.PoolReport
	for _, p := range k.members(c.Name) {
		if p.Kind == wants && (m.Pool == "" || p.Name == m.Pool) {
			all = append(all, p)
		}
	}
	if m.Pool != "" && len(all) == 0 {
		return nil, volume.Invalid("volume_content_source",
			fmt.Sprintf("the source is in pool %s, which is none of PoolClass %s", m.Pool, c.Name))
	}
	if len(m.Near) == 0 {
		return [][]*poolmessages.PoolReport{all}, nil
	}
	for _, near := range m.Near {
		var group []*poolmessages.PoolReport
		all = slices.DeleteFunc(all, func(p *poolmessages.PoolReport) bool {
			taken := slices.Contains(near, p.UUID)
			if taken {
				group = append(group, p)
			}
			return taken
		})
		if len(group) > 0 {
			groups = append(groups, group)
		}
	}
	return groups, nil
}

// candidateFor is a pool for the allocator, which refuses what its disk cannot do. declining: it may be one whose array has
// refused such volumes.
func (k *classes) candidateFor(c *v1alpha1.PoolClass, p *poolmessages.PoolReport, m *poolmessages.ReservePool,
	declining bool) pools.Candidate {
	one := k.candidate(p, m.Volume)
	switch {
	case one.Refuses != "":
		return one
	case p.Kind == pools.KindArray:
		one.Refuses = lacks(p, c, m, declining)
		return one
	}
	switch {
	case c.Spec.Enforcement == v1alpha1.Strict && !p.Disk.HardLimit:
		one.Refuses = rules.NoHardLimit(c.Name, p.Disk)
	case m.Block && !p.Disk.Block:
		one.Refuses = fmt.Sprintf("its volumes are directories (backend %s), and no block devices", p.Disk.Backend)
	case m.Copy && !p.Disk.Copies:
		one.Refuses = rules.NoCopies(p.Disk)
	}
	return one
}

// noneOf says that a class has no pool that could be asked.
func noneOf(m *poolmessages.ReservePool) string {
	switch {
	case m.Kind != pools.KindLocal:
		return "it has no pools"
	case len(m.Near) > 0 && m.Pool != "":
		return fmt.Sprintf("the source is in pool %s, which is on none of the nodes that are asked for", m.Pool)
	case len(m.Near) > 0:
		return "it has no pools on the nodes that are asked for"
	}
	return "it has no pools on nodes"
}

// joined joins two lists of reasons.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
