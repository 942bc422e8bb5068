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
	begun := a.DeletionTimestamp != nil
	if gone, err := t.startDeletion(ctx, a); gone || err != nil {
		return err
	}
	return t.cutOff(ctx, a, begun)
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

// cutOff detaches on the array, and lets the resource go. begun: the deletion of the resource is older than this
// operation. Then an earlier run of the controller may have asked the array to detach, which may carry that out yet: the
// resource stays until then, so that the volume is not attached to the node again and lost to its pods.
func (t *task) cutOff(ctx context.Context, a *v1alpha1.PoolAttachment, begun bool) error {
	err := t.detachOnArray(ctx, a)
	if err == nil && begun && t.Early() {
		err = rules.Errorf(volume.ErrUncertain, "volume %s is detached from node %s, and a request of an earlier run of the controller "+
			"may still come to detach it", a.Spec.VolumeName, a.Spec.NodeName)
	}
	if err != nil {
		t.unfinished = err
		return err
	}
	return t.letGo(ctx, a)
}

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
	servers, known := []string{a.Status.ServerID}, a.Status.ServerID != ""
	if !known {
		if servers, err = t.serversOf(ctx, a.Spec.NodeName, pool); err != nil {
			return err
		}
	}
	if found && v.Status.ID != "" {
		if servers, err = t.detachFrom(ctx, pool, v, a.Spec.NodeName, servers); err != nil {
			return err
		}
	}
	if !known && t.Early() {
		return rules.Errorf(volume.ErrUncertain, "volume %s may still be attached to node %s by a request of an earlier run of the controller",
			a.Spec.VolumeName, a.Spec.NodeName)
	}
	for _, id := range servers {
		if err := t.dropServer(ctx, pool, a.Spec.NodeName, id); err != nil {
			return err
		}
	}
	return nil
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
		return t.cutOff(ctx, a, true)
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
