package pools

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// holder is the node that has a disk, or had it last, and the hash of the key that the disk has; empty where it is not
// known.
type holder struct{ node, keyHash string }

// refusal is why a node is not believed to have a disk.
type refusal string

const (
	// unproven: the disk is another node's, and this one does not have its key.
	unproven refusal = "WrongKey"
	// copied: another node that is connected has the disk, too.
	copied refusal = "SameDisk"
)

// take lets a node that tells of a disk have it, or notes why not. That a node misses a disk that another one has by now
// is no claim to it.
func (d *disks) take(node, uuid string) bool {
	n := d.daemons[node]
	key := n.pools[uuid].Key
	why := d.doubt(node, uuid, key, n.refused[uuid])
	switch {
	case why != "" && n.pools[uuid].Failed != "":
		delete(n.refused, uuid)
		return false
	case why != "":
		n.refused[uuid] = why
		return false
	}
	delete(n.refused, uuid)
	d.holders[uuid] = holder{node: node, keyHash: cmp.Or(key.Hash(), d.holders[uuid].keyHash)}
	return true
}

// doubt returns why a node is not believed to have a disk; empty where it is. The disk is with the node that had it last,
// with the one that a person names, or with one that has its key: all else that a node tells of a disk, it may have read
// in names and labels. A disk of which nothing is known is the first one's.
func (d *disks) doubt(node, uuid string, key local.Key, was refusal) refusal {
	has, said := d.holders[uuid], d.said[uuid]
	switch {
	case said == node, said == "" && (has.node == "" || has.node == node):
		return ""
	case has.keyHash == "" || key.Hash() != has.keyHash:
		return unproven
	case has.node != node && (was == copied || d.has(has.node, uuid)):
		return copied
	}
	return ""
}

// recall takes over what a Pool remembers of its disk, unless more is known, and whom a person names. It returns the nodes
// that tell of the disk, the one that had it last first, where a person has changed that.
func (d *disks) recall(uuid string, remembered holder, said string) (again []string) {
	if _, known := d.holders[uuid]; !known && remembered.node != "" {
		d.holders[uuid] = remembered
	}
	if d.said[uuid] == said {
		return nil
	}
	d.said[uuid] = said
	if said == "" {
		delete(d.said, uuid)
	}
	return d.tellers(uuid)
}

// forget forgets who has a disk that has no Pool any more. It returns the nodes that tell of it, the one that had it
// last first.
func (d *disks) forget(uuid string) []string {
	again := d.tellers(uuid)
	delete(d.holders, uuid)
	delete(d.said, uuid)
	return again
}

// tellers returns the nodes that are connected and tell of a disk, the one that had it last first.
func (d *disks) tellers(uuid string) (nodes []string) {
	last := d.holders[uuid].node
	for _, node := range slices.Sorted(maps.Keys(d.daemons)) {
		if d.daemons[node].tells(uuid) {
			nodes = append(nodes, node)
		}
	}
	slices.SortStableFunc(nodes, func(a, b string) int {
		switch {
		case a == last:
			return -1
		case b == last:
			return 1
		}
		return 0
	})
	return nodes
}

// judgeAnew decides anew which of these nodes has a disk.
func (o *owner) judgeAnew(uuid string, nodes []string) {
	for _, node := range nodes {
		was := o.disks.daemons[node].refused[uuid]
		switch {
		case o.disks.take(node, uuid):
			o.diskTaken(uuid)
		case o.disks.daemons[node].refused[uuid] != "" && o.disks.daemons[node].refused[uuid] != was:
			o.refuse(uuid, node)
		}
	}
}

// poolOfDisk takes over what a Pool says of its disk.
func (o *owner) poolOfDisk(p *v1alpha1.Pool) {
	uuid, has := p.Spec.Local.UUID, p.Status.Local
	in(o.disks.pools, uuid, p.Name)
	again := o.disks.recall(uuid, holder{node: has.Node, keyHash: has.KeyHash}, o.saidOf(uuid))
	o.judgeAnew(uuid, again)
	o.settleDisk(uuid)
}

// saidOf returns the node that a person names for a disk.
func (o *owner) saidOf(uuid string) string {
	for _, name := range slices.Sorted(maps.Keys(o.disks.pools[uuid])) {
		if p := o.pools[name]; p != nil && p.Annotations[v1alpha1.DiskOn] != "" {
			return p.Annotations[v1alpha1.DiskOn]
		}
	}
	return ""
}

// poolOfDiskGone takes over that a Pool of a disk is gone. It is made anew, if a node has the disk.
func (o *owner) poolOfDiskGone(uuid, name string) {
	out(o.disks.pools, uuid, name)
	if len(o.disks.pools[uuid]) == 0 {
		o.judgeAnew(uuid, o.disks.forget(uuid))
	}
	o.settleDisk(uuid)
}

// refuse tells that a node is not believed to have a disk.
func (o *owner) refuse(uuid, node string) {
	why := o.disks.daemons[node].refused[uuid]
	text := fmt.Sprintf("node %s tells of a pool at %s with the UUID %s, which node %s has; it is not used: ", node,
		o.disks.daemons[node].pools[uuid].Path, uuid, cmp.Or(o.disks.said[uuid], o.disks.holders[uuid].node))
	if why == copied {
		text += "remove pool.json from a copied disk before the daemon sees it, or, if the disk has moved, restart the daemon of node " + node
	} else {
		text += "it does not have the key of that disk; if the disk has moved there all the same, and its pool.json has lost its key, set the " +
			"annotation " + v1alpha1.DiskOn + " of the Pool to " + node
	}
	for name := range o.disks.pools[uuid] {
		o.warnPool(name, string(why), text)
	}
	o.Log.Info("a node is not believed to have a disk", logkeys.Cause, text)
}
