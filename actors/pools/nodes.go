package pools

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// clusterNodes are the nodes of the cluster, by name. The PoolNode of one that has left the cluster is deleted
// once nothing is attached to it. Only the supervisor's turn uses it.
type clusterNodes map[string]nodeKnown

// nodeKnown says which objects there are of a node: Kubernetes' own, and ours.
type nodeKnown struct {
	core, ours bool
	// version is that of our own.
	version uint64
}

// nodeSeen notes a node. Kubernetes' own come as metadata alone.
func (o *owner) nodeSeen(object client.Object) {
	n := o.nodes[object.GetName()]
	switch object := object.(type) {
	case *metav1.PartialObjectMetadata:
		n.core = true
		defer o.labelsSeen(object.Name, object.Labels)
	case *v1alpha1.PoolNode:
		if n.ours && rules.IsOlder(rules.ResourceVersion(object), n.version) {
			return
		}
		n.ours, n.version = true, rules.ResourceVersion(object)
		o.nodeHas(object)
	default:
		return
	}
	o.nodes[object.GetName()] = n
	o.forgetNode(object.GetName())
}

// nodeOf returns the node that a resource which is gone was about.
func (o *owner) nodeOf(m *poolmessages.Gone) string {
	switch m.Kind {
	case poolmessages.NodeKind, poolmessages.PoolNodeKind:
		return m.Name
	case poolmessages.PoolAttachmentKind:
		if a := o.index.Attachments[m.Name]; a != nil {
			return a.Node
		}
	}
	return ""
}

// nodeGone notes that an object of a node is gone.
func (o *owner) nodeGone(m *poolmessages.Gone, node string) {
	n, known := o.nodes[node]
	if !known {
		return
	}
	switch m.Kind {
	case poolmessages.NodeKind:
		n.core = false
		o.labelsSeen(m.Name, nil)
	case poolmessages.PoolNodeKind:
		n.ours, n.version = false, 0
		delete(o.index.Nodes, node)
	}
	if n == (nodeKnown{}) {
		delete(o.nodes, node)
		return
	}
	o.nodes[node] = n
	o.forgetNode(node)
}

// forgetNode has the PoolNode deleted, if it may be.
func (o *owner) forgetNode(node string) {
	if o.listed && o.mayForgetNode(node) == nil {
		o.goOn(rules.KeyOf(rules.KindNode, node))
	}
}

// mayForgetNode refuses to delete the PoolNode of a node that is in the cluster, or that something is
// attached to.
func (o *owner) mayForgetNode(node string) error {
	if n := o.nodes[node]; n.core || !n.ours {
		return rules.ErrNodeStays
	}
	return o.admission.MayForgetNode(node)
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
