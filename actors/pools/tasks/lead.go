package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// With the volume binding mode WaitForFirstConsumer the scheduler chooses the node of a claim, writes it into an
// annotation of the claim, and does not know that the claim's data are on the disk of another node. While the claim
// has the annotation, the scheduler places its pods on that node alone, and the provisioner makes the volume there.
// So the annotation leads both to the data.
//
// The provisioner removes the annotation after an error that says that the node has no room. It does so with the
// version of the claim for which it has asked. The annotation is changed before that error is returned: so the removal
// fails, and the provisioner asks again, for the node that has the data.

// selectedNode is that annotation of a claim.
const selectedNode = "volume.kubernetes.io/selected-node"

// onOtherNode is the error of a retained volume on a disk of a node where its claim's pod was not to run. It is an
// [volume.ErrNoSpace].
type onOtherNode struct {
	error
	volume string
	// node has the disk, or had it last and is away. It is empty where the disk is away.
	node string
}

// Unwrap is for package errors.
func (f *onOtherNode) Unwrap() error { return f.error }

// near refuses a volume that is on a disk of a node where the claim's pod cannot be: the scheduler has chosen the
// node before.
func (t *task) near(ctx context.Context, v *v1alpha1.PoolVolume, n pools.NewVolume) error {
	if len(n.Near) == 0 || v.Spec.Protocol != v1alpha1.Local {
		return nil
	}
	p := &v1alpha1.Pool{}
	found, err := t.read(ctx, v.Spec.PoolName, p)
	switch {
	case err != nil:
		return err
	case !found || p.Spec.Local == nil:
		return rules.UnknownPool(v.Spec.PoolName)
	}
	for _, group := range n.Near {
		if slices.Contains(group, p.Spec.Local.UUID) {
			return nil
		}
	}
	last := p.Status.Local.Node
	at, err := actors.Ask(ctx, t.Root, t.Supervisor(), &poolmessages.FindDisk{UUID: p.Spec.Local.UUID, Last: last})
	switch {
	case err == nil:
		last = at.Node
	case errors.Is(err, array.ErrNodeAway):
		at.Node = last
	case !errors.Is(err, array.ErrDiskAway):
		return err
	}
	return &onOtherNode{volume: v.Name, node: at.Node, error: rules.Errorf(volume.ErrNoSpace,
		"the data of volume %s are on a disk of node %s, and the pod was to run on another one; it can run on %s alone", v.Name, last, last)}
}

// lead leads a claim to the node that has its data, and returns the error for the provisioner. It changes nothing of
// a claim for which no node was chosen, or that has changed since it was read.
func (t *task) lead(ctx context.Context, c *claim, far *onOtherNode) error {
	switch chosen := c.object.Annotations[selectedNode]; {
	case far.node == "" || chosen == "":
		t.warn(c.object, "RestoreFailed", far)
		return far
	case chosen == far.node:
		return rules.Errorf(volume.ErrUnavailable,
			"the data of volume %s are on a disk of node %s, and Kubernetes does not know yet that the node "+
				"has that disk; the daemon of the node tells it", far.volume, far.node)
	}
	led := c.object.DeepCopy()
	led.Annotations[selectedNode] = far.node
	err := t.Resources.Patch(ctx, led, client.MergeFromWithOptions(c.object, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return far // another call follows, with what the claim is now
	case err != nil:
		err = errors.Join(far, env.KubernetesError(err, "lead the claim to node "+far.node))
		t.warn(c.object, "RestoreFailed", err)
		return fmt.Errorf("%w: %s", volume.ErrNoSpace, volume.OneLine(err))
	}
	t.tell(c.object, "NodeChosen", fmt.Sprintf("the data of volume %s are on a disk of node %s: the claim's volume and its pod go there, "+
		"and not to node %s", far.volume, far.node, c.object.Annotations[selectedNode]))
	return rules.Errorf(volume.ErrNoSpace, "the data of volume %s are on a disk of node %s; the claim was led there from node %s",
		far.volume, far.node, c.object.Annotations[selectedNode])
}

// whereabouts says where the data of a volume on a node are, for a pod that is not to run there.
func (t *task) whereabouts(ctx context.Context, v *v1alpha1.PoolVolume) string {
	if v.Spec.Protocol != v1alpha1.Local {
		return ""
	}
	at, err := actors.Ask(ctx, t.Root, t.Supervisor(), &poolmessages.FindDisk{UUID: t.UUIDOf(v.Spec.PoolName)})
	if err != nil {
		return ", on a disk that has gone away since"
	}
	return ", on a disk of node " + at.Node + ", where its pods run"
}
