package pools

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/katbox/katbox/actors/pools/nodes"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// poolsOfNode takes over which pools a node has.
func (o *owner) poolsOfNode(m *poolmessages.NodePools) {
	m.All = slices.DeleteFunc(m.All, func(p local.Pool) bool {
		bad := !pools.IsUUID(p.UUID) || !pools.IsID(p.Class)
		if bad {
			o.Log.Info("a pool of a node is not taken: its UUID or its class is none", "node", m.Node, "path", p.Path, "uuid", p.UUID,
				"class", p.Class)
		}
		return bad
	})
	if !o.listed {
		o.early[m.Node] = m
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
	early := o.early
	o.early = map[string]*poolmessages.NodePools{}
	for _, node := range slices.Sorted(maps.Keys(early)) {
		o.poolsOfNode(early[node])
	}
}

// diskTaken lets all be done that hangs on which node has a disk.
func (o *owner) diskTaken(uuid string) {
	o.look(uuid, false)
	o.settleDisk(uuid)
	for _, node := range o.disks.Labelled(uuid) {
		o.settleLabels(node)
	}
}

// nodeLeft takes over that a node is not connected.
func (o *owner) nodeLeft(m *poolmessages.NodeAway) {
	if early := o.early[m.Node]; early != nil && early.On == m.On {
		delete(o.early, m.Node)
	}
	for _, uuid := range o.disks.Leave(m) {
		o.look(uuid, false)
	}
}

// look lets the pools of a disk be asked how they are.
func (o *owner) look(uuid string, soon bool) {
	for _, name := range o.disks.PoolsOf(uuid) {
		o.supervisor.Tell(messages.KeyOf(rules.KindPool, name), &poolmessages.ProbePool{Soon: soon})
	}
}

// lookAtClass lets the pools on nodes of a class that has changed be asked how they are: it may be strict now.
func (o *owner) lookAtClass(c *v1alpha1.PoolClass) {
	if o.generations[c.Name] == c.Generation {
		return
	}
	o.generations[c.Name] = c.Generation
	for name, p := range o.pools {
		if p.Spec.Local != nil && p.Spec.ClassName == c.Name {
			o.supervisor.Tell(messages.KeyOf(rules.KindPool, name), &poolmessages.ProbePool{})
		}
	}
}

// judgeAnew decides anew which of these nodes has a disk.
func (o *owner) judgeAnew(uuid string, nodes []string) {
	for _, node := range nodes {
		switch taken, refused := o.disks.Judge(uuid, node); {
		case taken:
			o.diskTaken(uuid)
		case refused:
			o.refuse(uuid, node)
		}
	}
}

// poolOfDisk takes over what a Pool says of its disk.
func (o *owner) poolOfDisk(p *v1alpha1.Pool) {
	uuid, has := p.Spec.Local.UUID, p.Status.Local
	o.disks.AddPool(uuid, p.Name)
	again := o.disks.Recall(uuid, nodes.Holder{Node: has.Node, KeyHash: has.KeyHash}, o.saidOf(uuid))
	o.judgeAnew(uuid, again)
	o.settleDisk(uuid)
}

// saidOf returns the node that a person names for a disk.
func (o *owner) saidOf(uuid string) string {
	for _, name := range o.disks.PoolsOf(uuid) {
		if p := o.pools[name]; p != nil && p.Annotations[v1alpha1.DiskOn] != "" {
			return p.Annotations[v1alpha1.DiskOn]
		}
	}
	return ""
}

// poolOfDiskGone takes over that a Pool of a disk is gone. It is made anew, if a node has the disk.
func (o *owner) poolOfDiskGone(uuid, name string) {
	if o.disks.RemovePool(uuid, name) {
		o.judgeAnew(uuid, o.disks.Forget(uuid))
	}
	o.settleDisk(uuid)
}

// refuse tells that a node is not believed to have a disk.
func (o *owner) refuse(uuid, node string) {
	why, text := o.disks.Refused(uuid, node)
	for _, name := range o.disks.PoolsOf(uuid) {
		o.warnPool(name, why, text)
	}
	o.Log.Info("a node is not believed to have a disk", logkeys.Cause, text)
}

// settleDisk lets the Pool of a disk be made, or get the class that the node says.
func (o *owner) settleDisk(uuid string) {
	if o.listed && o.wantedPool(uuid).Class != "" {
		o.goOn(messages.KeyOf(rules.KindDisk, uuid))
	}
}

// wantedPool decides what is to be done for the Pool of a disk. A pool with volumes keeps its class.
func (o *owner) wantedPool(uuid string) (work poolmessages.PoolWork) {
	node, disk := o.disks.Disk(uuid)
	if node == "" {
		return work
	}
	names := o.disks.PoolsOf(uuid)
	if len(names) == 0 {
		return poolmessages.PoolWork{Node: node, Disk: disk, Class: disk.Class}
	}
	p := o.pools[names[0]]
	switch {
	case len(names) > 1, p.DeletionTimestamp != nil:
	case p.Spec.ClassName == disk.Class:
		delete(o.otherClass, uuid)
	case o.index.Counts(p.Name) == poolmessages.PoolCounts{}:
		return poolmessages.PoolWork{Node: node, Disk: disk, Class: disk.Class, Pool: p.Name}
	case o.otherClass[uuid] != disk.Class:
		o.otherClass[uuid] = disk.Class
		o.warnPool(p.Name, "OtherClass", fmt.Sprintf("node %s wants %s in PoolClass %s; the pool has volumes, and stays in PoolClass %s",
			node, disk.Path, disk.Class, p.Spec.ClassName))
	}
	return work
}

// warnPool makes a warning of a Pool.
func (o *owner) warnPool(name, reason, text string) {
	if p := o.pools[name]; p != nil {
		o.Resources.Events.Event(p, corev1.EventTypeWarning, reason, text)
	}
}
