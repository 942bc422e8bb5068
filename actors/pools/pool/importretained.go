package pool

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// stillKept returns how long a volume is kept whose resource was lost, as its comment on the array says; nil for
// one that is in use. A PersistentVolume that needs it is the proof of that: the comment of a volume whose
// deletion was broken off says too early that it is retained.
func (x *comparison) stillKept(ctx context.Context, v *v1alpha1.PoolVolume, comment pools.Comment) (*pools.Retention, error) {
	kept := comment.Retained
	if v.Spec.Management != v1alpha1.Managed || kept == nil || kept.Since.IsZero() || kept.Until.Before(kept.Since) {
		return nil, nil
	}
	name, err := x.VolumeNamers.Of(ctx, x.Resources, v.Name, v.Spec.RequestName)
	if err != nil || name != "" {
		return nil, err
	}
	return kept, nil
}

// retainedAgain lets the status of an imported volume say that it is retained.
func retainedAgain(v *v1alpha1.PoolVolume, kept pools.Retention) {
	since, until := metav1.NewTime(kept.Since.Truncate(time.Second)), metav1.NewTime(kept.Until.Truncate(time.Second))
	v.Status.State, v.Status.RetainedSince, v.Status.RetainedUntil = v1alpha1.VolumeRetained, &since, &until
}

// vanished lets the resource of a retained volume go whose volume is not on its array any more.
func (x *comparison) vanished(ctx context.Context, known poolmessages.Content) error {
	var object v1alpha1.PoolVolume
	if err := x.Resources.Get(ctx, client.ObjectKey{Name: known.Name}, &object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !rules.IsKept(&object) || object.Status.ID != known.ID || object.Status.RetainedSince == nil {
		return nil
	}
	order := &poolmessages.EndRetained{
		Routing: messages.Routing{ID: messages.KeyOf(rules.KindVolume, known.Name)}, Name: known.Name, Since: object.Status.RetainedSince.Time,
		Reason: pools.Vanished, Why: rules.MissingMessage(rules.KindOfPool(x.pool)),
	}
	order.Prepare()
	x.Root.Send(x.Supervisor(), order)
	return nil
}
