package tasks

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// retain keeps a volume that a call deletes, if its lifespan is longer than nothing. kept is false for one that
// is to be deleted.
func (t *task) retain(ctx context.Context, v *v1alpha1.PoolVolume) (kept bool, err error) {
	switch {
	case rules.IsKept(v):
		return true, nil // asked again
	case rules.IsGiven(v):
		return false, rules.Errorf(volume.ErrBusy, "volume %s is being given to another claim", v.Name)
	case v.DeletionTimestamp != nil || v.Spec.Management == v1alpha1.External || v.Status.State != v1alpha1.VolumeReady:
		return false, nil
	}
	if err := t.stillClaimed(ctx, v); err != nil {
		return false, err
	}
	has, err := t.owned(ctx, v)
	if err != nil {
		return false, err
	}
	lifespan, err := t.lifespan(ctx, v, has.lifespan)
	if err != nil || lifespan <= 0 {
		return false, err
	}
	pool, err := t.UsePool(ctx, v.Spec.PoolName)
	if err != nil {
		return false, err
	}
	have, found, err := t.findOnArray(ctx, v, pool)
	if err != nil || !found {
		return false, err
	}
	if err := t.unused(ctx, v, have, pool); err != nil {
		return false, err
	}
	namespace, err := t.sameNamespace(ctx, v, has)
	if err != nil {
		return false, err
	}
	if v.Spec.Lifespan == nil || v.Annotations[v1alpha1.RestoredFromAnnotation] != "" || namespace != nil || has.changed {
		if err := t.writeSpec(ctx, v, func() {
			has.write(v)
			v.Spec.Lifespan = &v1alpha1.Duration{Duration: lifespan}
			delete(v.Annotations, v1alpha1.RestoredFromAnnotation)
			if namespace != nil && v.Spec.ClaimRef != nil {
				v.Spec.ClaimRef.NamespaceUID = namespace.UID
			}
		}); err != nil {
			return false, err
		}
	}
	since := metav1.NewTime(time.Now().Truncate(time.Second))
	until := rules.UntilOf(since, lifespan)
	if err := t.comments(ctx, v, have.ID, pool, &pools.Retention{Since: since.UTC(), Until: until.UTC()}); err != nil {
		return false, err
	}
	if err := t.writeStatus(ctx, v, func() {
		v.Status.State, v.Status.Message = v1alpha1.VolumeRetained, ""
		v.Status.RetainedSince, v.Status.RetainedUntil = &since, &until
		v.Status.Conditions, v.Status.ObservedGeneration = nil, v.Generation
	}); err != nil {
		return false, err
	}
	text := "retained until " + until.UTC().Format(time.RFC3339) + ", " + duration.Format(lifespan) +
		" after its claim was deleted, unless room is needed before; "
	if has.isSeen() {
		text += "a new claim gets the data back with the annotation " + v1alpha1.RestoreAnnotation
	} else {
		text += "no claim gets the data back by itself, because the controller has not seen the last one that had them; " +
			"to give them to a namespace, set spec.claimRef of PoolVolume " + v.Name + ", with the namespaceUID"
	}
	t.tellBoth(v, "Retained", text)
	return true, nil
}

// lifespan is how long a volume is kept: what its claim has said, else its PersistentVolume, else the class.
func (t *task) lifespan(ctx context.Context, v *v1alpha1.PoolVolume, said time.Duration) (time.Duration, error) {
	if said != rules.NoLifespan {
		return said, nil
	}
	for _, name := range persistentVolumes(v) {
		pv := &corev1.PersistentVolume{}
		err := t.Resources.Get(ctx, client.ObjectKey{Name: name}, pv)
		if client.IgnoreNotFound(err) != nil {
			return 0, env.KubernetesError(err, "read the PersistentVolume "+name)
		}
		if err != nil || !namesVolume(pv, v) {
			continue
		}
		lifespan, invalid := rules.LifespanOf(pv)
		if invalid != nil {
			t.warn(pv, "InvalidLifespan", invalid)
		}
		if lifespan >= 0 {
			return lifespan, nil
		}
	}
	return actors.Ask(ctx, t.Root, t.Single(poolmessages.ClassesName), &poolmessages.LifespanOfClass{Class: v.Spec.ClassName})
}

// persistentVolumes are the names that a volume's PersistentVolume may have, unless a person has made it.
func persistentVolumes(v *v1alpha1.PoolVolume) []string {
	if v.Spec.RequestName == "" || v.Spec.RequestName == v.Name {
		return []string{v.Name}
	}
	return []string{v.Spec.RequestName, v.Name}
}

// namesVolume reports whether a PersistentVolume is that of a volume.
func namesVolume(pv *corev1.PersistentVolume, v *v1alpha1.PoolVolume) bool {
	return pv.Spec.CSI != nil && pv.Spec.CSI.VolumeHandle == v.Name
}

// stillClaimed refuses to delete a volume that was restored, while the PersistentVolume of its present claim is
// bound, or that claim waits for it: the call is about an earlier one, which has the same handle.
func (t *task) stillClaimed(ctx context.Context, v *v1alpha1.PoolVolume) error {
	if v.Annotations[v1alpha1.RestoredFromAnnotation] == "" {
		return nil
	}
	pv := &corev1.PersistentVolume{}
	err := t.Resources.Get(ctx, client.ObjectKey{Name: v.Spec.RequestName}, pv)
	if client.IgnoreNotFound(err) != nil {
		return env.KubernetesError(err, "read the PersistentVolume "+v.Spec.RequestName)
	}
	if err == nil && namesVolume(pv, v) && pv.Status.Phase == corev1.VolumeBound && pv.DeletionTimestamp == nil {
		return rules.Errorf(pools.ErrInUse, "volume %s was given to another claim, and its PersistentVolume %s is bound", v.Name, pv.Name)
	}
	if err == nil || v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID == "" {
		return nil
	}
	c, err := t.readClaim(ctx, pools.Claim{Namespace: v.Spec.ClaimRef.Namespace, Name: v.Spec.ClaimRef.Name})
	if err == nil && c != nil && c.UID == string(v.Spec.ClaimRef.UID) && c.object.DeletionTimestamp == nil {
		return rules.Errorf(pools.ErrInUse, "volume %s was given to claim %s, which gets a PersistentVolume next", v.Name, c.Name)
	}
	return err
}

// unused refuses to retain a volume that its array has attached somewhere, as its deletion is refused. What a
// node does with a volume on its disk the node says, when the comment is written.
func (t *task) unused(ctx context.Context, v *v1alpha1.PoolVolume, have array.Volume, pool poolmessages.UsablePool) error {
	if v.Spec.Protocol == v1alpha1.Local {
		return nil
	}
	there, err := pool.Array.Attachments(ctx, have.ID)
	if err != nil {
		return t.arrayError(pool.Name, err, "look where volume "+v.Name+" is attached")
	}
	var servers []string
	for _, at := range there {
		servers = append(servers, at.ServerID)
	}
	if len(servers) > 0 {
		return rules.Errorf(pools.ErrInUse, "volume %s, whose claim is deleted, is attached to %s on the array of pool %s; detach it there",
			v.Name, strings.Join(servers, ", "), pool.Name)
	}
	return nil
}

// sameNamespace reads the namespace of a claim whose UID was not written down when the volume was made; nil
// where that is not needed, or where the namespace is a later one of the name.
func (t *task) sameNamespace(ctx context.Context, v *v1alpha1.PoolVolume, has ownership) (*metav1.PartialObjectMetadata, error) {
	c := has.claim
	if c == nil || c.NamespaceUID != "" {
		return nil, nil
	}
	namespace, err := t.namespace(ctx, c.Namespace)
	if err != nil || namespace.UID == "" || v.CreationTimestamp.Time.Before(namespace.CreationTimestamp.Time) {
		return nil, err
	}
	return namespace, nil
}

// comments writes the comment of a volume, with how long it is kept if it is retained. An array that refuses the
// comment keeps the volume as it is.
func (t *task) comments(ctx context.Context, v *v1alpha1.PoolVolume, id string, pool poolmessages.UsablePool, kept *pools.Retention) error {
	comment := t.comment(v)
	comment.Retained = kept
	err := pool.Array.CommentVolume(ctx, id, comment.String())
	if err == nil {
		return nil
	}
	for _, open := range []error{
		array.ErrUncertain, array.ErrUnreachable, array.ErrBusy, array.ErrAttached, array.ErrNotFound, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, open) {
			return t.arrayError(pool.Name, err, "mark volume "+v.Name)
		}
	}
	t.warn(v, "NotMarked", err)
	return nil
}

// finishRetained makes true what a person has changed of a retained volume: how long it is kept, or its owner.
func (t *task) finishRetained(ctx context.Context, v *v1alpha1.PoolVolume) error {
	pool, err := t.UsePool(ctx, v.Spec.PoolName)
	if err != nil {
		return err
	}
	if err := t.handedOver(ctx, v); err != nil {
		return err
	}
	if v.Spec.Lifespan == nil {
		if err := t.writeSpec(ctx, v, func() {
			v.Spec.Lifespan = &v1alpha1.Duration{Duration: v.Status.RetainedUntil.Sub(v.Status.RetainedSince.Time)}
		}); err != nil {
			return err
		}
	}
	since, until := *v.Status.RetainedSince, rules.UntilOf(*v.Status.RetainedSince, v.Spec.Lifespan.Duration)
	if err := t.comments(ctx, v, v.Status.ID, pool, &pools.Retention{Since: since.UTC(), Until: until.UTC()}); err != nil {
		return err
	}
	return t.writeStatus(ctx, v, func() {
		v.Status.RetainedUntil, v.Status.ObservedGeneration = &until, v.Generation
	})
}

// handedOver writes down whose a retained volume is that an administrator has given to a claim in another
// namespace, by changing spec.claimRef: the UIDs there are those of the former owner.
func (t *task) handedOver(ctx context.Context, v *v1alpha1.PoolVolume) error {
	c := v.Spec.ClaimRef
	if c == nil || c.Namespace == v.Labels[v1alpha1.LabelNamespace] {
		return nil
	}
	namespace, err := t.namespace(ctx, c.Namespace)
	if err != nil {
		return err
	}
	if namespace.UID == "" {
		return rules.Errorf(volume.ErrNotFound, "volume %s is to be given to the namespace %s, which does not exist", v.Name, c.Namespace)
	}
	if err := t.writeSpec(ctx, v, func() {
		v.Spec.ClaimRef.UID, v.Spec.ClaimRef.NamespaceUID = "", namespace.UID
		if v.Labels == nil {
			v.Labels = map[string]string{}
		}
		rules.SetLabel(v, v1alpha1.LabelNamespace, c.Namespace)
	}); err != nil {
		return err
	}
	t.tell(v, "HandedOver", "a claim in the namespace "+c.Namespace+" may have it back as "+c.Name)
	return nil
}
