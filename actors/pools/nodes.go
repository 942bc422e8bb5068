package pools

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// An array lets in to a volume over NFS what comes from the address of the node's server record. When a node
// gets another address, its daemon writes it into the PoolNode, and each volume is attached anew: first to a
// server record for the new address, then detached from the old one, so that what the node writes goes on.
// Kubernetes does not ask for it. Over iSCSI the initiator's name counts, which stays.

// nodeHas notes the address of a node, and lets its volumes follow.
func (o *owner) nodeHas(n *v1alpha1.PoolNode) {
	if len(n.Spec.Addresses) == 0 {
		return
	}
	at := poolmessages.NodeAddress{Address: n.Spec.Addresses[0], IQN: n.Spec.IQN}
	for _, attachment := range o.index.SetNode(n.Name, at) {
		o.goOn(messages.KeyOf(rules.KindAttachment, attachment)) // before all is listed, nothing does
	}
}

// labelsSeen notes the topology labels of a node.
func (o *owner) labelsSeen(node string, labels map[string]string) {
	var uuids []string
	for key := range labels {
		if uuid, ok := pools.PoolOfKey(key); ok {
			uuids = append(uuids, uuid)
		}
	}
	o.disks.SetLabels(node, uuids)
	o.settleLabels(node)
}

// settleLabels lets labels of a node be removed, where other nodes have their disks.
func (o *owner) settleLabels(node string) {
	if o.listed && len(o.disks.StaleLabels(node)) > 0 {
		o.goOn(messages.KeyOf(rules.KindLabels, node))
	}
}

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
		return o.index.NodeOf(m.Name)
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
		o.index.ForgetNode(node)
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
		o.goOn(messages.KeyOf(rules.KindNode, node))
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
