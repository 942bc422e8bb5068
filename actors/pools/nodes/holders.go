package nodes

import (
	"cmp"
	"maps"
	"slices"

	"github.com/katbox/katbox/internal/model/local"
)

// Holder is the node that has a disk, or had it last, and the hash of the key that the disk has; empty where it is not
// known.
type Holder struct{ Node, KeyHash string }

// Refusal is why a node is not believed to have a disk.
type Refusal string

const (
	// unproven: the disk is another node's, and this one does not have its key.
	unproven Refusal = "WrongKey"
	// Copied: another node that is connected has the disk, too.
	Copied Refusal = "SameDisk"
)

// Take lets a node that tells of a disk have it, or notes why not. That a node misses a disk that another one has by now
// is no claim to it.
func (d *Disks) Take(node, uuid string) bool {
	n := d.Daemons[node]
	key := n.Pools[uuid].Key
	why := d.doubt(node, uuid, key, n.Refused[uuid])
	switch {
	case why != "" && n.Pools[uuid].Failed != "":
		delete(n.Refused, uuid)
		return false
	case why != "":
		n.Refused[uuid] = why
		return false
	}
	delete(n.Refused, uuid)
	d.Holders[uuid] = Holder{Node: node, KeyHash: cmp.Or(key.Hash(), d.Holders[uuid].KeyHash)}
	return true
}

// doubt returns why a node is not believed to have a disk; empty where it is. The disk is with the node that had it last,
// with the one that a person names, or with one that has its key: all else that a node tells of a disk, it may have read
// in names and labels. A disk of which nothing is known is the first one's.
func (d *Disks) doubt(node, uuid string, key local.Key, was Refusal) Refusal {
	has, said := d.Holders[uuid], d.Said[uuid]
	switch {
	case said == node, said == "" && (has.Node == "" || has.Node == node):
		return ""
	case has.KeyHash == "" || key.Hash() != has.KeyHash:
		return unproven
	case has.Node != node && (was == Copied || d.has(has.Node, uuid)):
		return Copied
	}
	return ""
}

// Recall takes over what a Pool remembers of its disk, unless more is known, and whom a person names. It returns the nodes
// that tell of the disk, the one that had it last first, where a person has changed that.
func (d *Disks) Recall(uuid string, remembered Holder, said string) (again []string) {
	if _, known := d.Holders[uuid]; !known && remembered.Node != "" {
		d.Holders[uuid] = remembered
	}
	if d.Said[uuid] == said {
		return nil
	}
	d.Said[uuid] = said
	if said == "" {
		delete(d.Said, uuid)
	}
	return d.tellers(uuid)
}

// Forget forgets who has a disk that has no Pool any more. It returns the nodes that tell of it, the one that had it
// last first.
func (d *Disks) Forget(uuid string) []string {
	again := d.tellers(uuid)
	delete(d.Holders, uuid)
	delete(d.Said, uuid)
	return again
}

// tellers returns the nodes that are connected and tell of a disk, the one that had it last first.
func (d *Disks) tellers(uuid string) (nodes []string) {
	last := d.Holders[uuid].Node
	for _, node := range slices.Sorted(maps.Keys(d.Daemons)) {
		if d.Daemons[node].Tells(uuid) {
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
