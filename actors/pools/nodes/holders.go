package nodes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// Holder is the node that has a disk, or had it last, and the hash of the key that the disk has; empty where it is not
// known.
type Holder struct{ Node, KeyHash string }

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
func (d *Disks) take(node, uuid string) bool {
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
	d.holders[uuid] = Holder{Node: node, KeyHash: cmp.Or(key.Hash(), d.holders[uuid].KeyHash)}
	return true
}

// doubt returns why a node is not believed to have a disk; empty where it is. The disk is with the node that had it last,
// with the one that a person names, or with one that has its key: all else that a node tells of a disk, it may have read
// in names and labels. A disk of which nothing is known is the first one's.
func (d *Disks) doubt(node, uuid string, key local.Key, was refusal) refusal {
	has, said := d.holders[uuid], d.said[uuid]
	switch {
	case said == node, said == "" && (has.Node == "" || has.Node == node):
		return ""
	case has.KeyHash == "" || key.Hash() != has.KeyHash:
		return unproven
	case has.Node != node && (was == copied || d.has(has.Node, uuid)):
		return copied
	}
	return ""
}

// Recall takes over what a Pool remembers of its disk, unless more is known, and whom a person names. It returns the nodes
// that tell of the disk, the one that had it last first, where a person has changed that.
func (d *Disks) Recall(uuid string, remembered Holder, said string) (again []string) {
	if _, known := d.holders[uuid]; !known && remembered.Node != "" {
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

// Forget forgets who has a disk that has no Pool any more. It returns the nodes that tell of it, the one that had it
// last first.
func (d *Disks) Forget(uuid string) []string {
	again := d.tellers(uuid)
	delete(d.holders, uuid)
	delete(d.said, uuid)
	return again
}

// tellers returns the nodes that are connected and tell of a disk, the one that had it last first.
func (d *Disks) tellers(uuid string) (nodes []string) {
	last := d.holders[uuid].Node
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

// Judge decides again whether a node has a disk that it reports. The disk is taken from then on, or refused for the first time,
// or nothing changes.
func (d *Disks) Judge(uuid, node string) (taken, refused bool) {
	was := d.daemons[node].refused[uuid]
	if d.take(node, uuid) {
		return true, false
	}
	is := d.daemons[node].refused[uuid]
	return false, is != "" && is != was
}

// Refused says why a node is not believed to have a disk: in a word, and in a text for people.
func (d *Disks) Refused(uuid, node string) (reason, text string) {
	n := d.daemons[node]
	text = fmt.Sprintf("node %s tells of a pool at %s with the UUID %s, which node %s has; it is not used: ", node,
		n.pools[uuid].Path, uuid, cmp.Or(d.said[uuid], d.holders[uuid].Node))
	why := n.refused[uuid]
	if why == copied {
		text += "remove pool.json from a copied disk before the daemon sees it, or, if the disk has moved, restart the daemon of node " + node
	} else {
		text += "it does not have the key of that disk; if the disk has moved there all the same, and its pool.json has lost its key, set the " +
			"annotation " + v1alpha1.DiskOn + " of the Pool to " + node
	}
	return string(why), text
}
