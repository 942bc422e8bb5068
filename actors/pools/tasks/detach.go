package tasks

import (
	"context"
	"errors"
	"slices"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// detach detaches a volume from a node. After nil the array has cut the node off: Kubernetes may have
// lost sight of the node, and lets another one write to the volume next.
func (t *task) detach(ctx context.Context, of, node string) error {
	a := &v1alpha1.PoolAttachment{}
	found, err := t.read(ctx, t.name, a)
	if err != nil {
		return err
	}
	if !found {
		return t.detachUnknown(ctx, of, node)
	}
	if err := t.keep(ctx, a); err != nil {
		return err
	}
	if gone, err := t.startDeletion(ctx, a); gone || err != nil {
		return err
	}
	return t.cutOff(ctx, a)
}

// detachUnknown detaches a volume from a node where there is no resource of that: the resources may be
// lost, and what is on the array not.
func (t *task) detachUnknown(ctx context.Context, of, node string) error {
	v := &v1alpha1.PoolVolume{}
	found, err := t.read(ctx, of, v)
	if err != nil || !found || v.Status.ID == "" {
		return err
	}
	return t.detachOnArray(ctx, &v1alpha1.PoolAttachment{
		Spec: v1alpha1.PoolAttachmentSpec{VolumeName: of, NodeName: node, PoolName: v.Spec.PoolName},
	})
}

// cutOff detaches on the array, and lets the resource go.
func (t *task) cutOff(ctx context.Context, a *v1alpha1.PoolAttachment) error {
	if err := t.detachOnArray(ctx, a); err != nil {
		t.unfinished = err
		return err
	}
	return t.letGo(ctx, a)
}

// detachOnArray detaches, and while the array may still carry out requests of an earlier run of the controller the error is
// [volume.ErrUncertain] all the same: one to attach would let the node at the volume again, one to detach would take what is
// attached to the node next.
func (t *task) detachOnArray(ctx context.Context, a *v1alpha1.PoolAttachment) error {
	pool, err := t.UsePool(ctx, a.Spec.PoolName)
	if err != nil {
		return err
	}
	v := &v1alpha1.PoolVolume{}
	found, err := t.read(ctx, a.Spec.VolumeName, v)
	if err != nil {
		return err
	}
	servers := []string{a.Status.ServerID}
	if a.Status.ServerID == "" {
		if servers, err = t.serversOf(ctx, a.Spec.NodeName, pool); err != nil {
			return err
		}
	}
	if found && v.Status.ID != "" {
		if servers, err = t.detachFrom(ctx, pool, v, a.Spec.NodeName, servers); err != nil {
			return err
		}
	}
	if t.Early() {
		return t.earlierRun(a)
	}
	for _, id := range servers {
		if err := t.dropServer(ctx, pool, a.Spec.NodeName, id); err != nil {
			return err
		}
	}
	return nil
}

// earlierRun says that the array may still carry out what an earlier run of the controller has asked.
func (t *task) earlierRun(a *v1alpha1.PoolAttachment) error {
	return rules.Errorf(volume.ErrUncertain, "volume %s, node %s: the controller was restarted, and the array may still carry out an earlier "+
		"request to attach or detach; it is tried again", a.Spec.VolumeName, a.Spec.NodeName)
}

// serversOf returns the server records that have a node's name. A node whose address has changed while
// something was attached to it has two.
func (t *task) serversOf(ctx context.Context, node string, pool poolmessages.UsablePool) (ids []string, err error) {
	all, err := pool.Array.Servers(ctx)
	if err != nil {
		return nil, t.arrayError(pool.Name, err, "look for the server record of node "+node)
	}
	for _, s := range all {
		if isServerOf(s, pools.ServerName(node, t.Cluster)) {
			ids = append(ids, s.ID)
		}
	}
	return ids, nil
}

// detachFrom detaches a volume from a node's server records, and looks whether that is so. It returns
// all records of the node that it has found.
func (t *task) detachFrom(ctx context.Context, pool poolmessages.UsablePool, v *v1alpha1.PoolVolume, node string, servers []string,
) ([]string, error) {
	doing := "detach volume " + v.Name + " from node " + node
	for _, id := range servers {
		if err := pool.Array.Detach(ctx, v.Status.ID, id); err != nil {
			return nil, t.arrayError(pool.Name, err, doing)
		}
	}
	left, err := pool.Array.Attachments(ctx, v.Status.ID)
	if errors.Is(err, array.ErrNotFound) || err == nil && len(left) == 0 {
		return servers, nil
	}
	if err != nil {
		return nil, t.arrayError(pool.Name, err, doing)
	}
	all, err := t.serversOf(ctx, node, pool)
	if err != nil {
		return nil, err
	}
	for _, still := range left {
		switch {
		case slices.Contains(servers, still.ServerID):
			return nil, rules.Errorf(volume.ErrUncertain, "%s: it is still attached to server %s on the array of pool %s",
				doing, still.ServerID, pool.Name)
		case slices.Contains(all, still.ServerID): // another record of the node, which was not written down
			return t.detachFrom(ctx, pool, v, node, append(slices.Clone(servers), still.ServerID))
		}
	}
	return servers, nil
}

// finishAttachment makes true what the resource of an attachment says.
func (t *task) finishAttachment(ctx context.Context) error {
	a := &v1alpha1.PoolAttachment{}
	found, err := t.read(ctx, t.name, a)
	switch {
	case err != nil || !found:
		return err
	}
	t.Note(a)
	switch {
	case a.DeletionTimestamp != nil:
		return t.cutOff(ctx, a)
	case rules.FindsDisk(a):
		if err := t.judgeDisk(ctx, a); err != nil {
			return err
		}
	}
	switch {
	case !rules.UnfinishedAttachment(a):
		if moved, err := t.nodeHasMoved(ctx, a); err != nil || !moved {
			return err
		}
	}
	if may, err := t.admitted(ctx, a); err != nil || !may {
		return err
	}
	_, err = t.attach(ctx, pools.NewAttachment{
		Volume: a.Spec.VolumeName, Node: a.Spec.NodeName, ReadOnly: a.Spec.ReadOnly, Shared: a.Spec.Shared,
	})
	return err
}
