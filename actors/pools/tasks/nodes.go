package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

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

// finishNode deletes a PoolNode whose node has left the cluster. The node may be back by now, so the API
// server is asked.
func (t *task) finishNode(ctx context.Context) error {
	if err := t.mayDelete(ctx, rules.KindNode); err != nil {
		if errors.Is(err, rules.ErrNodeStays) || errors.Is(err, pools.ErrInUse) {
			return nil // the end of what keeps it will be seen
		}
		return err
	}
	core := &metav1.PartialObjectMetadata{}
	core.SetGroupVersionKind(rules.NodeGVK)
	err := t.Resources.Get(ctx, client.ObjectKey{Name: t.name}, core)
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return env.KubernetesError(err, "read the Node "+t.name)
	}
	n := &v1alpha1.PoolNode{}
	found, err := t.read(ctx, t.name, n)
	if err != nil || !found {
		return err
	}
	_, err = t.startDeletion(ctx, n)
	return err
}
