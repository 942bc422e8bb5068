package pools

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// see takes over what a resource is, and lets what is unfinished go on.
func (o *owner) see(m *poolmessages.Seen) {
	if c, ok := m.Object.(*metav1.PartialObjectMetadata); ok && c.Kind == poolmessages.PersistentVolumeClaimKind {
		o.claimSeen(c)
		return
	}
	if pv, ok := m.Object.(*corev1.PersistentVolume); ok {
		o.boundSeen(pv)
		return
	}
	o.nodeSeen(m.Object)
	retained := o.isRetained(m.Object)
	if !o.index.See(m) {
		return
	}
	switch object := m.Object.(type) {
	case *v1alpha1.PoolVolume:
		o.volumeSeen(object)
		o.tellRetention(object, retained)
	case *v1alpha1.Pool:
		o.seePool(object)
		return
	case *v1alpha1.PoolClass:
		o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.ClassSeen{Object: object})
		o.lookAtClass(object)
		return
	}
	if id, ok := o.index.Unfinished(rules.ResourceKind(m.Object), m.Object.GetName()); ok {
		o.goOn(id)
	}
}

// drop forgets a resource, of which a pool or a class that is being deleted may have waited for the end.
func (o *owner) drop(m *poolmessages.Gone) {
	switch m.Kind {
	case poolmessages.PersistentVolumeClaimKind:
		o.claimGone(m.Name)
		return
	case poolmessages.PersistentVolumeKind:
		o.bound.drop(m.Name)
		return
	}
	node := o.nodeOf(m)
	pool := o.index.Drop(m)
	o.nodeGone(m, node)
	switch m.Kind {
	case poolmessages.PoolKind:
		delete(o.pools, m.Name)
		o.UUIDs.Delete(m.Name)
		for _, uuid := range o.disks.DisksOf(m.Name) {
			defer o.poolOfDiskGone(uuid, m.Name)
		}
		o.places.Leave(m.Name)
		o.supervisor.Tell(messages.KeyOf(rules.KindPool, m.Name), &poolmessages.PoolEnds{})
		o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.PoolGone{Name: m.Name})
	case poolmessages.PoolClassKind:
		o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.ClassGone{Name: m.Name})
	default:
		if m.Kind == poolmessages.PoolVolumeKind && pool != "" {
			delete(o.claims.behind, m.Name)
			o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.VolumeNotRetained{Name: m.Name})
			o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.ReleasePool{Volume: m.Name, Gone: true})
		}
		if p := o.pools[pool]; p != nil && p.Spec.Local != nil {
			o.look(p.Spec.Local.UUID, true) // it has more room now
			o.settleDisk(p.Spec.Local.UUID)
		}
		if p := o.pools[pool]; p != nil && p.DeletionTimestamp != nil {
			o.supervisor.Tell(messages.KeyOf(rules.KindPool, pool), &poolmessages.PoolCountsChanged{Counts: o.index.Counts(pool)})
		}
	}
}

// seePool tells the actor of a pool, which it starts, and the classes.
func (o *owner) seePool(p *v1alpha1.Pool) {
	if before := o.pools[p.Name]; before != nil && before.UID == p.UID &&
		rules.IsOlder(rules.ResourceVersion(p), rules.ResourceVersion(before)) {
		return
	}
	o.pools[p.Name] = p
	member := &poolmessages.PoolMember{Pool: p.Name, Class: p.Spec.ClassName, Kind: rules.KindOfPool(p)}
	if p.Spec.Local != nil {
		member.UUID = p.Spec.Local.UUID
		o.UUIDs.Store(p.Name, member.UUID)
		defer o.poolOfDisk(p)
	}
	o.Root.Send(o.Single(poolmessages.ClassesName), member)
	if id := messages.KeyOf(rules.KindPool, p.Name); o.supervisor.IsAwake(id) {
		o.supervisor.Tell(id, &poolmessages.PoolSeen{Object: p, Counts: o.index.Counts(p.Name)})
	} else {
		o.wakePool(p.Name)
	}
}

// wakePool starts the actor of a pool.
func (o *owner) wakePool(name string) {
	if p := o.pools[name]; p != nil && o.listed {
		o.supervisor.Wake(messages.KeyOf(rules.KindPool, name), nil, &poolmessages.PoolSeen{Object: p, Counts: o.index.Counts(p.Name)})
	}
}

// begin lets everything go on that an earlier run has left unfinished.
func (o *owner) begin() {
	if o.listed {
		return
	}
	o.listed = true
	o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.Listed{})
	o.places.Remember(o.pools)
	for name := range o.pools {
		o.wakePool(name)
	}
	for _, id := range o.index.AllUnfinished() {
		o.goOn(id)
	}
	for name := range o.claims.behind {
		o.catchUp(name)
	}
	for node := range o.nodes {
		o.forgetNode(node)
		o.settleLabels(node)
	}
	o.takeEarly()
}

// isRetained reports whether the index knows a volume as retained.
func (o *owner) isRetained(object client.Object) bool {
	v, ok := object.(*v1alpha1.PoolVolume)
	if !ok {
		return false
	}
	known := o.index.Volume(v.Name)
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
