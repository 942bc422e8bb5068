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
	Daemons map[string]*Daemon
	// Holders have the disks, or had them last, by the UUIDs of the pools. The Pools remember them.
	Holders map[string]Holder
	// Said are the nodes that have disks as persons say, by the UUIDs of the pools.
	Said map[string]string
	// Early is what nodes have told before all Pools were known: who may have a disk is not known before.
	Early map[string]*poolmessages.NodePools
	// Pools are the names of the Pools of a disk. There is one, unless a person has made another.
	Pools map[string]map[string]bool
	// Labelled are the nodes that have the label of a disk.
	Labelled map[string]map[string]bool
	// Told are the classes that nodes want, and that an Event has said are not those of the Pools.
	Told map[string]string
	// Classes are the generations of the PoolClasses.
	Classes map[string]int64
}

// Daemon is that of a node.
type Daemon struct {
	version string
	on      local.Pools
	Pools   map[string]local.Pool
	// Refused are the disks that this node is not believed to have.
	Refused map[string]Refusal
}

// NewDisks returns no disks.
func NewDisks() *Disks {
	return &Disks{
		Daemons: map[string]*Daemon{}, Holders: map[string]Holder{}, Said: map[string]string{}, Early: map[string]*poolmessages.NodePools{},
		Pools: map[string]map[string]bool{}, Labelled: map[string]map[string]bool{}, Told: map[string]string{}, Classes: map[string]int64{},
	}
}

// has reports whether a node is connected and has a disk that works.
func (d *Disks) has(node, uuid string) bool {
	n := d.Daemons[node]
	if n == nil || n.Refused[uuid] != "" {
		return false
	}
	p, ok := n.Pools[uuid]
	return ok && p.Failed == ""
}

// Holder returns the node that has a disk; empty where none that is connected has it.
func (d *Disks) Holder(uuid string) string {
	if node := d.Holders[uuid].Node; d.has(node, uuid) {
		return node
	}
	return ""
}

// Update notes the pools of a node. It returns those that it has or had, and those that it is newly not believed to have.
func (d *Disks) Update(m *poolmessages.NodePools) (changed, refused []string) {
	before := d.Daemons[m.Node]
	now := &Daemon{version: m.Version, on: m.On, Pools: map[string]local.Pool{}, Refused: map[string]Refusal{}}
	if before != nil && before.on == m.On {
		now.Refused = before.Refused
	}
	d.Daemons[m.Node] = now
	for _, p := range m.All {
		now.Pools[p.UUID] = p
	}
	for _, uuid := range slices.Sorted(maps.Keys(now.Pools)) {
		switch was := now.Refused[uuid]; {
		case d.Take(m.Node, uuid):
			changed = append(changed, uuid)
		case now.Refused[uuid] != "" && now.Refused[uuid] != was:
			refused = append(refused, uuid)
		}
	}
	if before != nil {
		for _, uuid := range slices.Sorted(maps.Keys(before.Pools)) {
			if _, still := now.Pools[uuid]; !still && d.Holders[uuid].Node == m.Node {
				changed = append(changed, uuid)
			}
		}
	}
	maps.DeleteFunc(now.Refused, func(uuid string, _ Refusal) bool { _, still := now.Pools[uuid]; return !still })
	return changed, refused
}

// Left notes that a connection of a node has ended. It returns the pools that the node had.
func (d *Disks) Left(m *poolmessages.NodeAway) (had []string) {
	n := d.Daemons[m.Node]
	if n == nil || n.on != m.On {
		return nil
	}
	delete(d.Daemons, m.Node)
	for _, uuid := range slices.Sorted(maps.Keys(n.Pools)) {
		if d.Holders[uuid].Node == m.Node {
			had = append(had, uuid)
		}
	}
	return had
}

// Find returns where a disk is. The error says whether its node is away, or the disk.
func (d *Disks) Find(uuid, last string) (poolmessages.DiskAt, error) {
	node := d.Holders[uuid].Node
	if n := d.Daemons[node]; n != nil {
		if _, there := n.Pools[uuid]; there && n.Refused[uuid] == "" {
			return poolmessages.DiskAt{Node: node, Version: n.version, UUID: uuid, On: n.on}, nil // the node says itself what is wrong with it
		}
	}
	if node == "" {
		node = last
	}
	switch {
	case node == "":
		return poolmessages.DiskAt{}, fmt.Errorf("%w: no node that is connected has the disk with the UUID %s", array.ErrNodeAway, uuid)
	case d.Daemons[node] != nil:
		return poolmessages.DiskAt{}, fmt.Errorf("%w: node %s is connected, and does not have the disk with the UUID %s, which it had last",
			array.ErrDiskAway, node, uuid)
	}
	return poolmessages.DiskAt{}, fmt.Errorf("%w: node %s had the disk with the UUID %s last", array.ErrNodeAway, node, uuid)
}

// In adds a name to a set of a key.
func In(sets map[string]map[string]bool, key, name string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	sets[key][name] = true
}

// Out removes it.
func Out(sets map[string]map[string]bool, key, name string) {
	delete(sets[key], name)
	if len(sets[key]) == 0 {
		delete(sets, key)
	}
}

// Tells reports whether a node tells of a disk.
func (d *Daemon) Tells(uuid string) bool {
	_, ok := d.Pools[uuid]
	return ok
}
