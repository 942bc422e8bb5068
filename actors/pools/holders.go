package pools

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/katbox/katbox/actors/pools/nodes"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// judgeAnew decides anew which of these nodes has a disk.
func (o *owner) judgeAnew(uuid string, nodes []string) {
	for _, node := range nodes {
		was := o.disks.Daemons[node].Refused[uuid]
		switch {
		case o.disks.Take(node, uuid):
			o.diskTaken(uuid)
		case o.disks.Daemons[node].Refused[uuid] != "" && o.disks.Daemons[node].Refused[uuid] != was:
			o.refuse(uuid, node)
		}
	}
}

// poolOfDisk takes over what a Pool says of its disk.
func (o *owner) poolOfDisk(p *v1alpha1.Pool) {
	uuid, has := p.Spec.Local.UUID, p.Status.Local
	nodes.In(o.disks.Pools, uuid, p.Name)
	again := o.disks.Recall(uuid, nodes.Holder{Node: has.Node, KeyHash: has.KeyHash}, o.saidOf(uuid))
	o.judgeAnew(uuid, again)
	o.settleDisk(uuid)
}

// saidOf returns the node that a person names for a disk.
func (o *owner) saidOf(uuid string) string {
	for _, name := range slices.Sorted(maps.Keys(o.disks.Pools[uuid])) {
		if p := o.pools[name]; p != nil && p.Annotations[v1alpha1.DiskOn] != "" {
			return p.Annotations[v1alpha1.DiskOn]
		}
	}
	return ""
}

// poolOfDiskGone takes over that a Pool of a disk is gone. It is made anew, if a node has the disk.
func (o *owner) poolOfDiskGone(uuid, name string) {
	nodes.Out(o.disks.Pools, uuid, name)
	if len(o.disks.Pools[uuid]) == 0 {
		o.judgeAnew(uuid, o.disks.Forget(uuid))
	}
	o.settleDisk(uuid)
}

// refuse tells that a node is not believed to have a disk.
func (o *owner) refuse(uuid, node string) {
	why := o.disks.Daemons[node].Refused[uuid]
	text := fmt.Sprintf("node %s tells of a pool at %s with the UUID %s, which node %s has; it is not used: ", node,
		o.disks.Daemons[node].Pools[uuid].Path, uuid, cmp.Or(o.disks.Said[uuid], o.disks.Holders[uuid].Node))
	if why == nodes.Copied {
		text += "remove pool.json from a copied disk before the daemon sees it, or, if the disk has moved, restart the daemon of node " + node
	} else {
		text += "it does not have the key of that disk; if the disk has moved there all the same, and its pool.json has lost its key, set the " +
			"annotation " + v1alpha1.DiskOn + " of the Pool to " + node
	}
	for name := range o.disks.Pools[uuid] {
		o.warnPool(name, string(why), text)
	}
	o.Log.Info("a node is not believed to have a disk", logkeys.Cause, text)
}
