package pools

import (
	"maps"
	"slices"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// NodePools tells which pools a node has, when its daemon has connected and when they have changed. on asks the
// daemon, and is the same one as long as the connection lasts.
func (c *Controller) NodePools(node, version string, on local.Pools, all []local.Pool) {
	c.Root.Send(c.Supervisor(), &poolmessages.NodePools{Node: node, Version: version, On: on, All: slices.Clone(all)})
}

// NodeAway tells that the connection of a node has ended. Another one of the node may have begun since.
func (c *Controller) NodeAway(node string, on local.Pools) {
	c.Root.Send(c.Supervisor(), &poolmessages.NodeAway{Node: node, On: on})
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
		o.disks.Early[m.Node] = m
		return
	}
	changed, refused := o.disks.Update(m)
	for _, uuid := range refused {
		o.refuse(uuid, m.Node)
	}
	for _, uuid := range changed {
		o.diskTaken(uuid)
	}
}

// takeEarly takes over what nodes have told before all Pools were known.
func (o *owner) takeEarly() {
	early := o.disks.Early
	o.disks.Early = map[string]*poolmessages.NodePools{}
	for _, node := range slices.Sorted(maps.Keys(early)) {
		o.toldOf(early[node])
	}
}

// diskTaken lets all be done that hangs on which node has a disk.
func (o *owner) diskTaken(uuid string) {
	o.look(uuid, false)
	o.settleDisk(uuid)
	for node := range o.disks.Labelled[uuid] {
		o.settleLabels(node)
	}
}

// left takes over that a node is not connected.
func (o *owner) left(m *poolmessages.NodeAway) {
	if early := o.disks.Early[m.Node]; early != nil && early.On == m.On {
		delete(o.disks.Early, m.Node)
	}
	for _, uuid := range o.disks.Left(m) {
		o.look(uuid, false)
	}
}

// look lets the pools of a disk be asked how they are.
func (o *owner) look(uuid string, soon bool) {
	for name := range o.disks.Pools[uuid] {
		o.supervisor.Tell(rules.KeyOf(rules.KindPool, name), &poolmessages.ProbePool{Soon: soon})
	}
}

// lookAtClass lets the pools on nodes of a class that has changed be asked how they are: it may be strict now.
func (o *owner) lookAtClass(c *v1alpha1.PoolClass) {
	if o.disks.Classes[c.Name] == c.Generation {
		return
	}
	o.disks.Classes[c.Name] = c.Generation
	for name, p := range o.pools {
		if p.Spec.Local != nil && p.Spec.ClassName == c.Name {
			o.supervisor.Tell(rules.KeyOf(rules.KindPool, name), &poolmessages.ProbePool{})
		}
	}
}
