package pools

import (
	"context"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/v1alpha1"
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
	before, now := o.index.Nodes[n.Name], poolmessages.NodeAddress{Address: n.Spec.Addresses[0], IQN: n.Spec.IQN}
	o.index.Nodes[o.index.Word(n.Name)] = now
	if now.Address == before.Address || !o.listed {
		return
	}
	for name, a := range o.index.Attachments {
		if a.Node == n.Name && o.index.Moved(a) {
			o.goOn(rules.KeyOf(rules.KindAttachment, name))
		}
	}
}

// nodeHasMoved is moved by what the API server says now.
func (t *task) nodeHasMoved(ctx context.Context, a *v1alpha1.PoolAttachment) (bool, error) {
	if a.Status.Address == "" || a.Status.State != v1alpha1.AttachmentReady {
		return false, nil
	}
	node, err := t.node(ctx, a.Spec.NodeName, a.Spec.Protocol)
	if err != nil {
		return false, err
	}
	t.Note(node) // the index may not know it yet, and would ask again and again
	return node.Spec.Addresses[0] != a.Status.Address, nil
}
