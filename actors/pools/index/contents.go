package index

import (
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// Contents returns the resources on a pool.
func (x *Index) Contents(pool string) (all poolmessages.Contents) {
	p := x.pools[pool]
	if p == nil {
		return all
	}
	all.Volumes = make([]poolmessages.Content, 0, len(p.volumes))
	for name, v := range p.volumes {
		all.Volumes = append(all.Volumes, poolmessages.Content{Name: name, ID: v.id, Size: v.size, Flags: v.Flags, Export: v.export,
			Group: v.group})
	}
	for name, s := range x.snapshots {
		if s.pool == pool {
			all.Snapshots = append(all.Snapshots, poolmessages.Content{Name: name, ID: s.id, Volume: s.volume, Size: s.size, Flags: s.flags,
				Group: s.group})
		}
	}
	for name, a := range x.attachments {
		if a.pool == pool {
			// Over NFS the array has let in the address that the resource says; over iSCSI the initiator stays.
			node := poolmessages.NodeAddress{Address: a.address}
			if a.flags.Has(poolmessages.FlagISCSI) {
				node = poolmessages.NodeAddress{IQN: x.nodes[a.Node].IQN}
			}
			all.Attachments = append(all.Attachments, poolmessages.Content{
				Name: name, ID: a.server, Volume: a.volume, Flags: a.flags, Reached: a.reached, Target: a.target, LUN: a.lun, Node: node,
				NodeName: a.Node,
			})
		}
	}
	return all
}

// Counts returns how many resources a pool has.
func (x *Index) Counts(pool string) poolmessages.PoolCounts {
	if p := x.pools[pool]; p != nil {
		return p.counts
	}
	return poolmessages.PoolCounts{}
}
