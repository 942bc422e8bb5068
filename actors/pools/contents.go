package pools

import (
	"github.com/katbox/katbox/messages"
)

// countPool asks how many resources a pool has. Pool -> supervisor.
type countPool struct {
	name string
	messages.Reply[poolCounts]
}

// listPool asks which resources a pool has. Pool -> supervisor.
type listPool struct {
	name string
	messages.Reply[contents]
}

// contents are the resources on a pool.
type contents struct {
	volumes, snapshots, attachments []content
}

// content is one of them. id is the array's; for an attachment that of the server record, and volume
// names its PoolVolume.
type content struct {
	name, id, volume string
	size             int64
	flags            flags
	// export and group are hashes of what the resource repeats of the array.
	export, group uint32
	// Of an attachment: reached is where the node reaches the volume, target and lun what it finds there, and node how
	// it appears on the server record.
	reached, target string
	lun             int
	node            nodeAt
	nodeName        string
}

// contents returns the resources on a pool.
func (x *index) contents(pool string) (all contents) {
	p := x.pools[pool]
	if p == nil {
		return all
	}
	all.volumes = make([]content, 0, len(p.volumes))
	for name, v := range p.volumes {
		all.volumes = append(all.volumes, content{name: name, id: v.id, size: v.size, flags: v.flags, export: v.export, group: v.group})
	}
	for name, s := range x.snapshots {
		if s.pool == pool {
			all.snapshots = append(all.snapshots, content{name: name, id: s.id, volume: s.volume, size: s.size, flags: s.flags, group: s.group})
		}
	}
	for name, a := range x.attachments {
		if a.pool == pool {
			// Over NFS the array has let in the address that the resource says; over iSCSI the initiator stays.
			node := nodeAt{address: a.address}
			if a.flags.has(flagISCSI) {
				node = nodeAt{iqn: x.nodes[a.node].iqn}
			}
			all.attachments = append(all.attachments, content{
				name: name, id: a.server, volume: a.volume, flags: a.flags, reached: a.reached, target: a.target, lun: a.lun, node: node,
				nodeName: a.node,
			})
		}
	}
	return all
}

// counts returns how many resources a pool has.
func (x *index) counts(pool string) poolCounts {
	if p := x.pools[pool]; p != nil {
		return p.counts
	}
	return poolCounts{}
}
