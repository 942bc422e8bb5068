package tasks

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// Whose the data of a volume are says the claimRef of its PersistentVolume: an administrator may give that to another
// claim, also in another namespace. So the resource of the volume follows it while the claim is there, and it is read
// once more when the volume is deleted. A namespace is known by its UID only where the controller has seen it with the
// claim: what another claim leaves is not given back on a claim's own word.

// unseenNamespace is, in the place of a namespace's UID, that of a claim that was gone before the controller saw it. No
// namespace has it.
const unseenNamespace types.UID = "unseen"

// ownership is the owner of a volume.
type ownership struct {
	// claim is nil where that is not known.
	claim *v1alpha1.ClaimRef
	// changed: the resource says something else. Then lifespan is what the claim says, and not what an earlier one did.
	changed  bool
	lifespan time.Duration
}

// owned reads the owner of a volume.
func (t *task) owned(ctx context.Context, v *v1alpha1.PoolVolume) (ownership, error) {
	has := ownership{claim: v.Spec.ClaimRef, lifespan: rules.LifespanFromSpec(v.Spec.Lifespan)}
	pv, err := t.persistentVolumeOf(ctx, v)
	if err != nil || pv == nil || sameClaim(v.Spec.ClaimRef, pv.Spec.ClaimRef) {
		return has, err
	}
	ref := pv.Spec.ClaimRef
	if ref == nil || ref.UID == "" { // an administrator has taken it from its claim
		if has.claim != nil && has.isSeen() {
			has.changed, has.claim = true, has.claim.DeepCopy()
			has.claim.NamespaceUID = unseenNamespace
		}
		return has, nil
	}
	has.changed, has.lifespan = true, rules.NoLifespan
	has.claim = &v1alpha1.ClaimRef{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, NamespaceUID: unseenNamespace}
	// The namespace first: as long as its claim is there, so was the namespace before.
	namespace, err := t.namespace(ctx, ref.Namespace)
	if err != nil {
		return has, err
	}
	c, err := t.readClaim(ctx, pools.Claim{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil || c == nil || c.UID != string(ref.UID) {
		return has, err
	}
	if namespace.UID != "" {
		has.claim.NamespaceUID, has.lifespan = namespace.UID, c.Lifespan
	}
	return has, nil
}

// isSeen reports whether the controller has seen the claim of a volume in its namespace.
func (o ownership) isSeen() bool { return o.claim != nil && o.claim.NamespaceUID != unseenNamespace }

// write says it in the resource of the volume.
func (o ownership) write(v *v1alpha1.PoolVolume) {
	if !o.changed {
		return
	}
	v.Spec.ClaimRef, v.Spec.Lifespan = o.claim, rules.LifespanToSpec(o.lifespan)
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	if o.claim != nil {
		rules.SetLabel(v, v1alpha1.LabelNamespace, o.claim.Namespace)
	}
}

// sameClaim reports whether a resource and a PersistentVolume name the same claim. One that was gone when its volume was
// made the resource knows by its name alone.
func sameClaim(known *v1alpha1.ClaimRef, bound *corev1.ObjectReference) bool {
	switch {
	case known == nil || bound == nil || bound.UID == "":
		return false
	case known.UID == "":
		return known.Namespace == bound.Namespace && known.Name == bound.Name
	}
	return known.UID == bound.UID
}

// persistentVolumeOf reads the PersistentVolume of a volume; nil where there is none. One that was given to another claim
// has had another one before, with the same handle.
func (t *task) persistentVolumeOf(ctx context.Context, v *v1alpha1.PoolVolume) (*corev1.PersistentVolume, error) {
	names, given := persistentVolumes(v), v.Annotations[v1alpha1.RestoredFromAnnotation] != ""
	if given {
		names = names[:1]
	}
	for _, name := range names {
		if pv, err := t.readNaming(ctx, name, v); pv != nil || err != nil {
			return pv, err
		}
	}
	if given {
		return nil, nil
	}
	name, err := t.BoundNamers.Of(ctx, t.Resources, v.Name, v.Spec.RequestName) // a person may have made it
	if err != nil || name == "" {
		return nil, err
	}
	return t.readNaming(ctx, name, v)
}

// readNaming reads the PersistentVolume of a name, if it is that of a volume.
func (t *task) readNaming(ctx context.Context, name string, v *v1alpha1.PoolVolume) (*corev1.PersistentVolume, error) {
	pv := &corev1.PersistentVolume{}
	err := t.Resources.Get(ctx, client.ObjectKey{Name: name}, pv)
	if client.IgnoreNotFound(err) != nil {
		return nil, env.KubernetesError(err, "read the PersistentVolume "+name)
	}
	if err != nil || !namesVolume(pv, v) {
		return nil, nil
	}
	return pv, nil
}

// follow writes down which claim has a volume, and what that says of its lifespan, while there is the claim.
func (t *task) follow(ctx context.Context, v *v1alpha1.PoolVolume) error {
	if v.Spec.Management == v1alpha1.External || v.Status.State != v1alpha1.VolumeReady {
		return nil
	}
	has, err := t.owned(ctx, v)
	if err != nil {
		return err
	}
	if has.changed {
		if !has.isSeen() { // it may be seen yet; else the deletion says so
			return nil
		}
		if err := t.renameOwner(ctx, v, has); err != nil {
			return err
		}
		t.tell(v, "OwnerChanged", "its PersistentVolume is bound to claim "+has.claim.Namespace+"/"+has.claim.Name+
			" by now, and what it leaves is that claim's")
		return nil
	}
	ref := v.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return nil
	}
	c, err := t.readClaim(ctx, pools.Claim{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil || c == nil || c.UID != string(ref.UID) || c.Lifespan == rules.LifespanFromSpec(v.Spec.Lifespan) {
		return err
	}
	return t.writeSpec(ctx, v, func() { v.Spec.Lifespan = rules.LifespanToSpec(c.Lifespan) })
}

// renameOwner writes the owner of a volume into its resource, and into its comment on the array, by which a later import
// knows it. The comment comes first: what only the resource says is not looked at again.
func (t *task) renameOwner(ctx context.Context, v *v1alpha1.PoolVolume, has ownership) error {
	pool, err := t.UsePool(ctx, v.Spec.PoolName)
	if err != nil {
		return err
	}
	after := v.DeepCopy()
	has.write(after)
	if err := t.comments(ctx, after, v.Status.ID, pool, nil); err != nil {
		return err
	}
	return t.writeSpec(ctx, v, func() { has.write(v) })
}
