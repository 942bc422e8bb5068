package pools

import (
	"fmt"
	"maps"
	"slices"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// disks are the pools on the disks of the nodes whose daemons are connected. Only the supervisor's turn uses them.
type disks struct {
	daemons map[string]*daemon
	// holders have the disks, or had them last, by the UUIDs of the pools. The Pools remember them.
	holders map[string]holder
	// said are the nodes that have disks as persons say, by the UUIDs of the pools.
	said map[string]string
	// early is what nodes have told before all Pools were known: who may have a disk is not known before.
	early map[string]*poolmessages.NodePools
	// pools are the names of the Pools of a disk. There is one, unless a person has made another.
	pools map[string]map[string]bool
	// labelled are the nodes that have the label of a disk.
	labelled map[string]map[string]bool
	// told are the classes that nodes want, and that an Event has said are not those of the Pools.
	told map[string]string
	// classes are the generations of the PoolClasses.
	classes map[string]int64
}

// daemon is that of a node.
type daemon struct {
	version string
	on      local.Pools
	pools   map[string]local.Pool
	// refused are the disks that this node is not believed to have.
	refused map[string]refusal
}

func newDisks() *disks {
	return &disks{
		daemons: map[string]*daemon{}, holders: map[string]holder{}, said: map[string]string{}, early: map[string]*poolmessages.NodePools{},
		pools: map[string]map[string]bool{}, labelled: map[string]map[string]bool{}, told: map[string]string{}, classes: map[string]int64{},
	}
}

// NodePools tells which pools a node has, when its daemon has connected and when they have changed. on asks the
// daemon, and is the same one as long as the connection lasts.
func (c *Controller) NodePools(node, version string, on local.Pools, all []local.Pool) {
	c.Root.Send(c.Supervisor(), &poolmessages.NodePools{Node: node, Version: version, On: on, All: slices.Clone(all)})
}

// NodeAway tells that the connection of a node has ended. Another one of the node may have begun since.
func (c *Controller) NodeAway(node string, on local.Pools) {
	c.Root.Send(c.Supervisor(), &poolmessages.NodeAway{Node: node, On: on})
}

// has reports whether a node is connected and has a disk that works.
func (d *disks) has(node, uuid string) bool {
	n := d.daemons[node]
	if n == nil || n.refused[uuid] != "" {
		return false
	}
	p, ok := n.pools[uuid]
	return ok && p.Failed == ""
}

// holder returns the node that has a disk; empty where none that is connected has it.
func (d *disks) holder(uuid string) string {
	if node := d.holders[uuid].node; d.has(node, uuid) {
		return node
	}
	return ""
}

// toldOf notes the pools of a node. It returns those that it has or had, and those that it is newly not believed to have.
func (d *disks) toldOf(m *poolmessages.NodePools) (changed, refused []string) {
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
			if _, still := now.pools[uuid]; !still && d.holders[uuid].node == m.Node {
				changed = append(changed, uuid)
			}
		}
	}
	maps.DeleteFunc(now.refused, func(uuid string, _ refusal) bool { _, still := now.pools[uuid]; return !still })
	return changed, refused
}

// left notes that a connection of a node has ended. It returns the pools that the node had.
func (d *disks) left(m *poolmessages.NodeAway) (had []string) {
	n := d.daemons[m.Node]
	if n == nil || n.on != m.On {
		return nil
	}
	delete(d.daemons, m.Node)
	for _, uuid := range slices.Sorted(maps.Keys(n.pools)) {
		if d.holders[uuid].node == m.Node {
			had = append(had, uuid)
		}
	}
	return had
}

// find returns where a disk is. The error says whether its node is away, or the disk.
func (d *disks) find(uuid, last string) (poolmessages.DiskAt, error) {
	node := d.holders[uuid].node
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

// toldOf takes over which pools a node has.
func (o *owner) toldOf(m *poolmessages.NodePools) {
	m.All = slices.DeleteFunc(m.All, func(p local.Pool) bool {
		bad := !pools.IsUUID(p.UUID) || !pools.IsID(p.Class)
		if bad {
			o.Log.Info("a pool of a node is not taken: its UUID or its class is none", "node", m.Node, "path", p.Path, "uuid", p.UUID,
				"class", p.Class)
		}
		return bad
	})
	if !o.listed {
		o.disks.early[m.Node] = m
		return
	}
	changed, refused := o.disks.toldOf(m)
	for _, uuid := range refused {
		o.refuse(uuid, m.Node)
	}
	for _, uuid := range changed {
		o.diskTaken(uuid)
	}
}

// takeEarly takes over what nodes have told before all Pools were known.
func (o *owner) takeEarly() {
	early := o.disks.early
	o.disks.early = map[string]*poolmessages.NodePools{}
	for _, node := range slices.Sorted(maps.Keys(early)) {
		o.toldOf(early[node])
	}
}

// diskTaken lets all be done that hangs on which node has a disk.
func (o *owner) diskTaken(uuid string) {
	o.look(uuid, false)
	o.settleDisk(uuid)
	for node := range o.disks.labelled[uuid] {
		o.settleLabels(node)
	}
}

// left takes over that a node is not connected.
func (o *owner) left(m *poolmessages.NodeAway) {
	if early := o.disks.early[m.Node]; early != nil && early.On == m.On {
		delete(o.disks.early, m.Node)
	}
	for _, uuid := range o.disks.left(m) {
		o.look(uuid, false)
	}
}

// look lets the pools of a disk be asked how they are.
func (o *owner) look(uuid string, soon bool) {
	for name := range o.disks.pools[uuid] {
		o.supervisor.Tell(rules.KeyOf(rules.KindPool, name), &poolmessages.ProbePool{Soon: soon})
	}
}

// lookAtClass lets the pools on nodes of a class that has changed be asked how they are: it may be strict now.
func (o *owner) lookAtClass(c *v1alpha1.PoolClass) {
	if o.disks.classes[c.Name] == c.Generation {
		return
	}
	o.disks.classes[c.Name] = c.Generation
	for name, p := range o.pools {
		if p.Spec.Local != nil && p.Spec.ClassName == c.Name {
			o.supervisor.Tell(rules.KeyOf(rules.KindPool, name), &poolmessages.ProbePool{})
		}
	}
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
