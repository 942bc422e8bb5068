package tasks

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// attach attaches a volume to a node, or goes on where an earlier call has stopped. An attachment that
// is Ready is made again where the array has lost it.
func (t *task) attach(ctx context.Context, n pools.NewAttachment) (pools.Attachment, error) {
	v, err := t.usableVolume(ctx, n.Volume)
	if err != nil {
		return pools.Attachment{}, err
	}
	node, err := t.node(ctx, n.Node, v.Spec.Protocol)
	if err != nil {
		return pools.Attachment{}, err
	}
	a := &v1alpha1.PoolAttachment{}
	found, err := t.read(ctx, t.name, a)
	if err != nil {
		return pools.Attachment{}, err
	}
	if found {
		if err := sameAttachment(a, v, n); err != nil {
			return pools.Attachment{}, err
		}
		if err := t.keep(ctx, a); err != nil {
			return pools.Attachment{}, err
		}
	}
	pool, err := t.UsePool(ctx, v.Spec.PoolName)
	if err == nil && !n.Shared {
		err = t.notElsewhere(ctx, v, n.Node, pool)
	}
	if err != nil && !found {
		return pools.Attachment{}, err
	}
	if !found {
		if err := t.newAttachment(ctx, a, v, n); err != nil {
			return pools.Attachment{}, err
		}
	}
	if err == nil {
		err = t.attachOnArray(ctx, a, v, node, pool)
	}
	if err != nil {
		t.unfinished = err
		return pools.Attachment{}, err
	}
	return describeAttachment(a, v, pool), nil
}

// notElsewhere refuses to attach a volume that the array has attached to a server record of another node.
// No resource may tell of that: it was lost, or a person has attached the volume.
func (t *task) notElsewhere(ctx context.Context, v *v1alpha1.PoolVolume, node string, pool poolmessages.UsablePool) error {
	there, err := pool.Array.Attachments(ctx, v.Status.ID)
	if err != nil {
		return t.arrayError(pool.Name, err, "look where volume "+v.Name+" is attached")
	}
	if len(there) == 0 {
		return nil
	}
	own, err := t.serversOf(ctx, node, pool)
	if err != nil {
		return err
	}
	for _, at := range there {
		if !slices.Contains(own, at.ServerID) {
			return rules.Errorf(pools.ErrInUse,
				"volume %s is not shared, and attached to server %s on the array of pool %s, which is not of node %s; "+
					"detach it there", v.Name, at.ServerID, pool.Name, node)
		}
	}
	return nil
}

// node reads the node that a volume is to be attached to.
func (t *task) node(ctx context.Context, name string, protocol v1alpha1.Protocol) (*v1alpha1.PoolNode, error) {
	node := &v1alpha1.PoolNode{}
	found, err := t.read(ctx, name, node)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, rules.Errorf(volume.ErrNotFound, "there is no PoolNode %s; does Katbox run on the node, with pools switched on?", name)
	case len(node.Spec.Addresses) == 0:
		return nil, rules.Errorf(volume.ErrUnavailable, "the PoolNode %s has no address", name)
	case protocol == v1alpha1.ISCSI && node.Spec.IQN == "":
		return nil, rules.Errorf(volume.ErrUnavailable, "the PoolNode %s has no IQN, which a volume that is reached over iscsi needs", name)
	}
	return node, nil
}

// sameAttachment refuses a call that contradicts the attachment that there is.
func sameAttachment(a *v1alpha1.PoolAttachment, v *v1alpha1.PoolVolume, n pools.NewAttachment) error {
	switch {
	case a.DeletionTimestamp != nil:
		return rules.Errorf(volume.ErrBusy, "volume %s is being detached from node %s; try again", n.Volume, n.Node)
	case a.Spec.VolumeName != n.Volume || a.Spec.NodeName != n.Node ||
		a.Spec.PoolName != v.Spec.PoolName || a.Spec.Protocol != v.Spec.Protocol:
		return rules.Errorf(volume.ErrConflict, "the PoolAttachment %s is not that of volume %s, in pool %s, and node %s; delete it",
			a.Name, n.Volume, v.Spec.PoolName, n.Node)
	case a.Spec.ReadOnly != n.ReadOnly:
		return rules.Errorf(volume.ErrConflict, "volume %s is attached to node %s with read-only %t, asked for %t",
			n.Volume, n.Node, a.Spec.ReadOnly, n.ReadOnly)
	}
	return nil
}

// newAttachment makes the resource of an attachment.
func (t *task) newAttachment(ctx context.Context, a *v1alpha1.PoolAttachment, v *v1alpha1.PoolVolume, n pools.NewAttachment) error {
	*a = v1alpha1.PoolAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: t.name, Labels: map[string]string{}},
		Spec: v1alpha1.PoolAttachmentSpec{
			VolumeName: n.Volume, NodeName: n.Node, PoolName: v.Spec.PoolName, Protocol: v.Spec.Protocol,
			ReadOnly: n.ReadOnly, Shared: n.Shared,
		},
	}
	rules.SetLabel(a, v1alpha1.LabelPool, v.Spec.PoolName)
	return t.create(ctx, a)
}

// attachOnArray attaches the volume on the array and writes down where the node finds it.
func (t *task) attachOnArray(ctx context.Context, a *v1alpha1.PoolAttachment, v *v1alpha1.PoolVolume, node *v1alpha1.PoolNode,
	pool poolmessages.UsablePool,
) error {
	if a.Status.State == v1alpha1.AttachmentDetaching && t.Early() {
		return t.earlierRun(a)
	}
	var got array.Attachment
	err := t.withServer(ctx, pool, node, a.Spec.Protocol, func(id string) (err error) {
		got, err = t.attachTo(ctx, a, pool.Array, array.NewAttachment{
			ServerID: id, VolumeID: v.Status.ID, NFS: a.Spec.Protocol == v1alpha1.NFS, ReadOnly: a.Spec.ReadOnly,
		})
		return err
	})
	if err != nil {
		if _, known := errors.AsType[*rules.Problem](err); known {
			return err
		}
		return t.arrayError(pool.Name, err, "attach volume "+a.Spec.VolumeName+" to node "+a.Spec.NodeName)
	}
	before, after := a.Status, a.Status
	attached(&after, v, got, pool, node)
	if sameStatus(before, after) {
		return nil
	}
	if before.ServerID != "" && before.ServerID != got.ServerID {
		// The node's address has changed. This server record was right for the old one.
		if err := pool.Array.Detach(ctx, v.Status.ID, before.ServerID); err != nil {
			return t.arrayError(pool.Name, err, "detach volume "+v.Name+" from the former address of node "+a.Spec.NodeName)
		}
		if err := t.dropServer(ctx, pool, a.Spec.NodeName, before.ServerID); err != nil {
			return err
		}
	}
	err = t.writeStatus(ctx, a, func() { attached(&a.Status, v, got, pool, node) })
	if err == nil {
		t.tell(a, "Attached", "as server "+got.ServerID+" on the array")
	}
	return err
}

// attachTo attaches a volume. What is left of an earlier attachment in another mode is detached first:
// there is no resource of it any more, so it serves no pod. The resource says so before the array is asked to.
func (t *task) attachTo(ctx context.Context, a *v1alpha1.PoolAttachment, on array.Array, want array.NewAttachment,
) (array.Attachment, error) {
	got, err := on.Attach(ctx, want)
	if err != nil || got.ReadOnly == want.ReadOnly {
		return got, err
	}
	if err := t.writeStatus(ctx, a, func() { a.Status.State = v1alpha1.AttachmentDetaching }); err != nil {
		return got, err
	}
	if err := on.Detach(ctx, want.VolumeID, want.ServerID); err != nil {
		return got, err
	}
	return on.Attach(ctx, want)
}

// attached writes what is on the array into a status. The node has still to log in to an iSCSI target; what it
// has written about that stays.
func attached(s *v1alpha1.PoolAttachmentStatus, v *v1alpha1.PoolVolume, got array.Attachment, pool poolmessages.UsablePool,
	node *v1alpha1.PoolNode,
) {
	s.ServerID, s.Message = got.ServerID, ""
	if v.Spec.Protocol == v1alpha1.NFS {
		s.State, s.Address, s.Export = v1alpha1.AttachmentReady, node.Spec.Addresses[0], v.Status.ExportPath
		return
	}
	lun := int32(got.LUN) //nolint:gosec // a LUN has 14 bits
	target := got.Target
	if target == "" {
		target = pool.IQN
	}
	moved := s.Target != target || s.LUN == nil || *s.LUN != lun
	s.Target, s.LUN, s.Portal = target, &lun, pool.Portal
	if moved || s.State != v1alpha1.AttachmentReady {
		s.State = v1alpha1.AttachmentLoginPending
	}
}

func sameStatus(a, b v1alpha1.PoolAttachmentStatus) bool {
	if (a.LUN == nil) != (b.LUN == nil) || a.LUN != nil && *a.LUN != *b.LUN {
		return false
	}
	a.LUN, b.LUN = nil, nil
	return a == b
}

// describeAttachment returns an attachment as callers know it: how the node reaches the volume, and no
// secrets.
func describeAttachment(a *v1alpha1.PoolAttachment, v *v1alpha1.PoolVolume, pool poolmessages.UsablePool) pools.Attachment {
	d := pools.Attachment{
		Volume: a.Spec.VolumeName, Node: a.Spec.NodeName, Protocol: pools.Protocol(a.Spec.Protocol), ReadOnly: a.Spec.ReadOnly,
		Serial: v.Status.ID,
	}
	if a.Spec.Protocol == v1alpha1.NFS {
		d.Export = v.Status.ExportPath
		return d
	}
	d.Target, d.Portal, d.FSType, d.CHAPSecret = a.Status.Target, a.Status.Portal, v.Spec.FSType, pool.CHAPSecret
	d.WWID = v.Status.WWID
	if a.Status.LUN != nil {
		d.LUN = int(*a.Status.LUN)
	}
	return d
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
