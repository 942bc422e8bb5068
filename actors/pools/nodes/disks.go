package nodes

import (
	"fmt"
	"maps"
	"slices"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/local"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// Disks are the pools on the disks of the nodes whose daemons are connected. Only the supervisor's turn uses them.
type Disks struct {
	daemons map[string]*daemon
	// holders have the disks, or had them last, by the UUIDs of the pools. The Pools remember them.
	holders map[string]Holder
	// said are the nodes that have disks as persons say, by the UUIDs of the pools.
	said map[string]string
	// pools are the names of the Pools of a disk. There is one, unless a person has made another.
	pools map[string]map[string]bool
	// labelled are the nodes that have the label of a disk.
	labelled map[string]map[string]bool
}

// daemon is that of a node.
type daemon struct {
	version string
	on      local.Pools
	pools   map[string]local.Pool
	// refused are the disks that this node is not believed to have.
	refused map[string]refusal
}

// NewDisks returns no disks.
func NewDisks() *Disks {
	return &Disks{
		daemons: map[string]*daemon{}, holders: map[string]Holder{}, said: map[string]string{},
		pools: map[string]map[string]bool{}, labelled: map[string]map[string]bool{},
	}
}

// has reports whether a node is connected and has a disk that works.
func (d *Disks) has(node, uuid string) bool {
	n := d.daemons[node]
	if n == nil || n.refused[uuid] != "" {
		return false
	}
	p, ok := n.pools[uuid]
	return ok && p.Failed == ""
}

// Disk returns the node that has a disk, and what it tells of it; an empty one where no node that is connected has it.
func (d *Disks) Disk(uuid string) (node string, disk local.Pool) {
	node = d.holders[uuid].Node
	if !d.has(node, uuid) {
		return "", local.Pool{}
	}
	return node, d.daemons[node].pools[uuid]
}

// Update notes the pools of a node. It returns those that it has or had, and those that it is newly not believed to have.
func (d *Disks) Update(m *poolmessages.NodePools) (changed, refused []string) {
	before := d.daemons[m.Node]
	now := &daemon{version: m.Version, on: m.On, pools: map[string]local.Pool{}, refused: map[string]refusal{}}
	if before != nil && before.on == m.On {
		now.refused = before.refused
	}
	d.daemons[m.Node] = now
	for _, p := range m.All {
		now.pools[p.UUID] = p
	}
	for _, uuid := range slices.Sorted(maps.Keys(now.pools)) {
		switch was := now.refused[uuid]; {
		case d.take(m.Node, uuid):
			changed = append(changed, uuid)
		case now.refused[uuid] != "" && now.refused[uuid] != was:
			refused = append(refused, uuid)
		}
	}
	if before != nil {
		for _, uuid := range slices.Sorted(maps.Keys(before.pools)) {
			if _, still := now.pools[uuid]; !still && d.holders[uuid].Node == m.Node {
				changed = append(changed, uuid)
			}
		}
	}
	maps.DeleteFunc(now.refused, func(uuid string, _ refusal) bool { _, still := now.pools[uuid]; return !still })
	return changed, refused
}

// Leave notes that a connection of a node has ended. It returns the pools that the node had.
func (d *Disks) Leave(m *poolmessages.NodeAway) (had []string) {
	n := d.daemons[m.Node]
	if n == nil || n.on != m.On {
		return nil
	}
	delete(d.daemons, m.Node)
	for _, uuid := range slices.Sorted(maps.Keys(n.pools)) {
		if d.holders[uuid].Node == m.Node {
			had = append(had, uuid)
		}
	}
	return had
}

// Find returns where a disk is. The error says whether its node is away, or the disk.
func (d *Disks) Find(uuid, last string) (poolmessages.DiskAt, error) {
	node := d.holders[uuid].Node
	if n := d.daemons[node]; n != nil {
		if _, there := n.pools[uuid]; there && n.refused[uuid] == "" {
			return poolmessages.DiskAt{Node: node, Version: n.version, UUID: uuid, On: n.on}, nil // the node says itself what is wrong with it
		}
	}
	if node == "" {
		node = last
	}
	switch {
	case node == "":
		return poolmessages.DiskAt{}, fmt.Errorf("%w: no node that is connected has the disk with the UUID %s", array.ErrNodeAway, uuid)
	case d.daemons[node] != nil:
		return poolmessages.DiskAt{}, fmt.Errorf("%w: node %s is connected, and does not have the disk with the UUID %s, which it had last",
			array.ErrDiskAway, node, uuid)
	}
	return poolmessages.DiskAt{}, fmt.Errorf("%w: node %s had the disk with the UUID %s last", array.ErrNodeAway, node, uuid)
}

// AddPool notes that a Pool is that of a disk.
func (d *Disks) AddPool(uuid, pool string) { in(d.pools, uuid, pool) }

// RemovePool notes that a Pool of a disk is gone. It reports whether the disk has no other one.
func (d *Disks) RemovePool(uuid, pool string) (last bool) {
	out(d.pools, uuid, pool)
	return len(d.pools[uuid]) == 0
}

// PoolsOf returns the names of the Pools of a disk.
func (d *Disks) PoolsOf(uuid string) []string { return slices.Sorted(maps.Keys(d.pools[uuid])) }

// DisksOf returns the disks that a Pool is that of.
func (d *Disks) DisksOf(pool string) (uuids []string) {
	for uuid, pools := range d.pools {
		if pools[pool] {
			uuids = append(uuids, uuid)
		}
	}
	return uuids
}

// SetLabels notes the disks whose topology labels a node has.
func (d *Disks) SetLabels(node string, uuids []string) {
	for uuid := range d.labelled {
		if !slices.Contains(uuids, uuid) {
			out(d.labelled, uuid, node)
		}
	}
	for _, uuid := range uuids {
		in(d.labelled, uuid, node)
	}
}

// Labelled returns the nodes that have the label of a disk.
func (d *Disks) Labelled(uuid string) []string { return slices.Sorted(maps.Keys(d.labelled[uuid])) }

// StaleLabels returns the disks whose labels a node has, and that another node has.
func (d *Disks) StaleLabels(node string) (stale []string) {
	for uuid, labelled := range d.labelled {
		if !labelled[node] {
			continue
		}
		has, _ := d.Disk(uuid)
		if n := d.daemons[node]; has == "" || has == node || n != nil && n.tells(uuid) {
			continue
		}
		stale = append(stale, uuid)
	}
	slices.Sort(stale)
	return stale
}

// in adds a name to a set of a key.
func in(sets map[string]map[string]bool, key, name string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	sets[key][name] = true
}

// out removes it.
func out(sets map[string]map[string]bool, key, name string) {
	delete(sets[key], name)
	if len(sets[key]) == 0 {
		delete(sets, key)
	}
}

// tells reports whether a node tells of a disk.
func (d *daemon) tells(uuid string) bool {
	_, ok := d.pools[uuid]
	return ok
}
