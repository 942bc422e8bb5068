package pools

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/nodes"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// settleDisk lets the Pool of a disk be made, or get the class that the node says.
func (o *owner) settleDisk(uuid string) {
	if o.listed && o.wantedPool(uuid).Class != "" {
		o.goOn(rules.KeyOf(rules.KindDisk, uuid))
	}
}

// wantedPool decides what is to be done for the Pool of a disk. A pool with volumes keeps its class.
func (o *owner) wantedPool(uuid string) (work poolmessages.PoolWork) {
	node := o.disks.Holder(uuid)
	if node == "" {
		return work
	}
	disk := o.disks.Daemons[node].Pools[uuid]
	names := slices.Sorted(maps.Keys(o.disks.Pools[uuid]))
	if len(names) == 0 {
		return poolmessages.PoolWork{Node: node, Disk: disk, Class: disk.Class}
	}
	p := o.pools[names[0]]
	switch {
	case len(names) > 1, p.DeletionTimestamp != nil:
	case p.Spec.ClassName == disk.Class:
		delete(o.disks.Told, uuid)
	case o.index.Counts(p.Name) == poolmessages.PoolCounts{}:
		return poolmessages.PoolWork{Node: node, Disk: disk, Class: disk.Class, Pool: p.Name}
	case o.disks.Told[uuid] != disk.Class:
		o.disks.Told[uuid] = disk.Class
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

// finishDisk makes the Pool of a disk, or changes its class.
func (t *task) finishDisk(ctx context.Context) error {
	work, err := actors.Ask(ctx, t.Root, t.Supervisor(), &poolmessages.WantedPool{UUID: t.name})
	switch {
	case err != nil || work.Class == "":
		return err
	case work.Pool != "":
		return t.changeClass(ctx, work)
	}
	name := pools.LocalPoolName(work.Class, t.name)
	p := &v1alpha1.Pool{}
	found, err := t.read(ctx, name, p)
	if err != nil {
		return err
	}
	if found {
		if p.Spec.Local == nil || p.Spec.Local.UUID != t.name {
			t.warn(p, "NameTaken", fmt.Errorf("the Pool of the disk %s of node %s would have this name; make one by hand", t.name, work.Node))
			return nil
		}
		t.Note(p)
		return nil
	}
	*p = v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PoolSpec{
		ClassName: work.Class, Overcommit: "1", Local: &v1alpha1.LocalPool{UUID: t.name},
	}}
	if err := t.create(ctx, p); err != nil {
		return err
	}
	t.tell(p, "Created", fmt.Sprintf("node %s has it at %s", work.Node, work.Disk.Path))
	return nil
}

// changeClass puts an empty pool into the class that its node says.
func (t *task) changeClass(ctx context.Context, work poolmessages.PoolWork) error {
	p := &v1alpha1.Pool{}
	found, err := t.read(ctx, work.Pool, p)
	if err != nil || !found || p.DeletionTimestamp != nil {
		return err
	}
	before := p.Spec.ClassName
	if err := t.writeSpec(ctx, p, func() { p.Spec.ClassName = work.Class }); err != nil {
		return err
	}
	t.tell(p, "ClassChanged", fmt.Sprintf("node %s wants it in PoolClass %s; it was in %s, and has no volumes", work.Node, work.Class, before))
	return nil
}

// labelsSeen notes the topology labels of a node.
func (o *owner) labelsSeen(node string, labels map[string]string) {
	for uuid := range o.disks.Labelled {
		if _, still := labels[pools.TopologyKey(uuid)]; !still {
			nodes.Out(o.disks.Labelled, uuid, node)
		}
	}
	for key := range labels {
		if uuid, ok := pools.PoolOfKey(key); ok {
			nodes.In(o.disks.Labelled, uuid, node)
		}
	}
	o.settleLabels(node)
}

// settleLabels lets labels of a node be removed, where other nodes have their disks.
func (o *owner) settleLabels(node string) {
	if o.listed && len(o.staleLabels(node)) > 0 {
		o.goOn(rules.KeyOf(rules.KindLabels, node))
	}
}

// staleLabels returns the disks whose labels a node has, and that another node has.
func (o *owner) staleLabels(node string) (stale []string) {
	for uuid, nodes := range o.disks.Labelled {
		if !nodes[node] {
			continue
		}
		has := o.disks.Holder(uuid)
		if d := o.disks.Daemons[node]; has == "" || has == node || d != nil && d.Tells(uuid) {
			continue
		}
		stale = append(stale, uuid)
	}
	slices.Sort(stale)
	return stale
}

// finishLabels removes the labels of disks from a node that another node has: the scheduler would place pods on both.
func (t *task) finishLabels(ctx context.Context) error {
	stale, err := actors.Ask(ctx, t.Root, t.Supervisor(), &poolmessages.StaleLabels{Node: t.name})
	if err != nil || len(stale) == 0 {
		return err
	}
	gone := map[string]any{}
	for _, uuid := range stale {
		gone[pools.TopologyKey(uuid)] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": gone}})
	if err != nil {
		return err
	}
	node := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: t.name}}
	node.SetGroupVersionKind(rules.NodeGVK)
	err = t.Resources.Patch(ctx, node, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return env.KubernetesError(err, "remove the topology labels of disks that moved from the Node "+t.name)
	}
	t.Log.Info("a node had topology labels of disks that other nodes have", "node", t.name, "uuids", stale)
	t.Note(node)
	return nil
}
