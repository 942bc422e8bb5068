package classes

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// starts reports whether it is not known yet what the pool takes: its array is to be asked, or compared.
func starts(f *poolmessages.PoolReport) bool {
	return f.State == "" || f.State == v1alpha1.PoolConfiguring || f.State == v1alpha1.PoolImporting
}

// candidateOf is the pool for the allocator, with what was promised since the array was asked.
func candidateOf(f *poolmessages.PoolReport, reserved int64, making int) pools.Candidate {
	refuses := f.Refuses
	if f.State == "" {
		refuses = "it has not been looked at yet"
	}
	return pools.Candidate{
		Name: f.Name, Refuses: refuses, Full: f.Full, Total: f.On.Total, Available: f.On.Available, Provisioned: f.On.Provisioned,
		Headroom: f.Headroom,
		Reserved: reserved, Volumes: f.Counts.Managed + f.Counts.External + making, Overcommit: f.Overcommit,
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

// wants returns what a class wants; nothing, where there is no such class.
func (k *classes) wants(name string) (w poolmessages.ClassWants) {
	if c := k.classes[name]; c != nil {
		w.Strict = c.object.Spec.Enforcement == v1alpha1.Strict
		w.Needs = needsOf(c.object, &poolmessages.ReservePool{})
	}
	return w
}

// needsOf returns what a new volume of a class needs of an array.
func needsOf(c *v1alpha1.PoolClass, m *poolmessages.ReservePool) pools.Needs {
	protocol := cmp.Or(m.Protocol, pools.Protocol(c.Spec.Protocol), pools.NFS)
	if m.Block {
		protocol = pools.ISCSI
	}
	flags := c.Spec.VolumeFlags
	return pools.Needs{
		Protocol: protocol, Compress: flags.Compress, Dedupe: flags.Dedupe, Encrypt: flags.Encrypt,
		Options: pools.OptionsText(flags.Extra, m.Options),
	}
}

// lacks says why a pool on an array is passed over for a volume; empty if it is not. A copy needs what its source has.
// declining: it is not for what its array has refused.
func lacks(f *poolmessages.PoolReport, c *v1alpha1.PoolClass, m *poolmessages.ReservePool, declining bool) string {
	if m.Growth || m.Copy {
		return ""
	}
	needs := needsOf(c, m)
	if needs.Protocol == pools.ISCSI && f.Needs.NoISCSI {
		return "it says no target or no portal for iscsi"
	}
	if d, ok := f.Needs.Declines[needs]; ok && !declining && time.Since(d.At) < rules.DeclinedFor {
		return "it refuses such a volume: " + d.Why
	}
	return ""
}
