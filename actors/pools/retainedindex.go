package pools

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// isRetained reports whether the index knows a volume as retained.
func (o *owner) isRetained(object client.Object) bool {
	v, ok := object.(*v1alpha1.PoolVolume)
	if !ok {
		return false
	}
	known := o.index.Volumes[v.Name]
	return known != nil && known.Flags.Has(poolmessages.FlagRetained)
}

// tellRetention tells the classes of a volume that is retained, or was until now.
func (o *owner) tellRetention(v *v1alpha1.PoolVolume, was bool) {
	switch {
	case rules.IsKept(v) && v.Status.RetainedSince != nil && v.Status.RetainedUntil != nil:
		o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.VolumeRetained{
			Name: v.Name, Pool: v.Spec.PoolName, Size: v.Status.Capacity.Value(), Since: v.Status.RetainedSince.Time,
			Lifespan: v.Status.RetainedUntil.Sub(v.Status.RetainedSince.Time),
		})
	case was:
		o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.VolumeNotRetained{Name: v.Name})
	}
}
