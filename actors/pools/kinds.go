package pools

import (
	"fmt"
	"slices"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// A class may have pools on arrays and on nodes. Each CSI driver sees those of its own kind, and no others: so a
// class needs no kind, which one without pools would not have.

// kindOfPool tells a pool on an array from one on a disk of a node.
func kindOfPool(p *v1alpha1.Pool) pools.Kind {
	if p.Spec.Local != nil {
		return pools.KindLocal
	}
	return pools.KindArray
}

// kindOfVolume is the kind of the pool that a volume is in.
func kindOfVolume(v *v1alpha1.PoolVolume) pools.Kind { return pools.Protocol(v.Spec.Protocol).Kind() }

// onDevice reports whether a volume is a block device on its array. On a node it may have a file system of its own all
// the same.
func onDevice(v *v1alpha1.PoolVolume) bool {
	if v.Spec.Protocol == v1alpha1.Local {
		return v.Spec.VolumeMode == v1alpha1.Block
	}
	return v.Spec.Protocol == v1alpha1.ISCSI
}

// defaultHeadroom is the share of a node's disk that is promised to no volume where the Pool does not say.
const defaultHeadroom = 0.1

// promiseOnce: a pool on a node promises what it has, without the headroom, and once at most.
func promiseOnce(f *poolmessages.PoolReport, on *v1alpha1.LocalPool, disk array.Disk) {
	f.UUID, f.Disk = on.UUID, disk
	f.Headroom = int64(share(on.Headroom, defaultHeadroom) * float64(f.On.Total))
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
		one.Refuses = noHardLimit(c.Name, p.Disk)
	case m.Block && !p.Disk.Block:
		one.Refuses = fmt.Sprintf("its volumes are directories (backend %s), and no block devices", p.Disk.Backend)
	case m.Copy && !p.Disk.Copies:
		one.Refuses = noCopies(p.Disk)
	}
	return one
}

// noHardLimit says why a pool does not fit a class whose enforcement is Strict.
func noHardLimit(class string, disk array.Disk) string {
	return fmt.Sprintf("PoolClass %s has the enforcement Strict, and the backend %s of %s on node %s sets no limit that holds against "+
		"every pod; use the backend image, or the enforcement BestEffort", class, disk.Backend, disk.Path, disk.Node)
}

// noCopies says why nothing in a pool can be copied.
func noCopies(disk array.Disk) string {
	return fmt.Sprintf("it makes no copies and no snapshots (backend %s on %s)", disk.Backend, disk.FSType)
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
