package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// giveBack gives a retained volume to a claim, or goes on where an earlier order has stopped. The volume is bound
// to the claim before anything else, so that no other one gets it, and it does not expire. After a final error
// it is as it was before.
func (t *task) giveBack(ctx context.Context, m *poolmessages.RestoreVolume) (pools.Volume, error) {
	v := &v1alpha1.PoolVolume{}
	found, err := t.read(ctx, t.name, v)
	switch {
	case err != nil:
		return pools.Volume{}, err
	case !found:
		return pools.Volume{}, rules.Errorf(volume.ErrNotFound, "the retained volume %s is gone", t.name)
	}
	if rules.IsKept(v) {
		if err := t.fitsClaim(ctx, v, m); err != nil {
			return pools.Volume{}, err
		}
		if err := t.bind(ctx, v, m); err != nil {
			return pools.Volume{}, err
		}
	}
	bound := v.Spec.RequestName == m.New.Name
	switch {
	case bound && rules.IsGiven(v):
		if err := t.handOver(ctx, v); err != nil {
			return pools.Volume{}, err
		}
	case bound && v.Status.State == v1alpha1.VolumeReady && v.DeletionTimestamp == nil:
	default:
		if c := v.Spec.ClaimRef; c != nil && v.Status.State != v1alpha1.VolumeDeleting && v.DeletionTimestamp == nil {
			return pools.Volume{}, rules.Errorf(volume.ErrNotFound, "the data of volume %s were given to claim %s", t.name, c.Name)
		}
		return pools.Volume{}, rules.Errorf(volume.ErrNotFound, "the retained volume %s is being deleted", t.name)
	}
	if err := t.near(ctx, v, m.New); err != nil {
		return pools.Volume{}, err
	}
	if v.Status.Capacity.Value() < m.New.Required {
		return t.growVolume(ctx, m.New.Required, m.New.Limit)
	}
	d := t.describeVolume(v)
	d.Source = pools.Source{} // this claim has asked for none
	return d, nil
}

// fitsClaim refuses to give a retained volume to a claim that asks for something else, or where it is not its
// claim's namespace that has it.
func (t *task) fitsClaim(ctx context.Context, v *v1alpha1.PoolVolume, m *poolmessages.RestoreVolume) error {
	n, c, size := m.New, v.Spec.ClaimRef, v.Status.Capacity.Value()
	if c == nil || c.Namespace != m.For.Namespace || string(c.NamespaceUID) != m.For.NamespaceUID || m.For.NamespaceUID == "" {
		return rules.Errorf(volume.ErrNotFound, "volume %s is not retained for the namespace %s", v.Name, m.For.Namespace)
	}
	of := "the data of claim " + c.Name
	kind := pools.Protocol(v.Spec.Protocol).Kind()
	asked := v1alpha1.Protocol(n.Protocol)
	switch {
	case n.Class != v.Spec.ClassName || n.Kind != "" && n.Kind != kind:
		return volume.Invalid("parameters", fmt.Sprintf("%s are of the PoolClass %s, and this claim's volume would be of %s; "+
			"name a StorageClass of %s", of, v.Spec.ClassName, n.Class, v.Spec.ClassName))
	case volumeModeOf(n.Block) != v.Spec.VolumeMode:
		return volume.Invalid("volume_capabilities", fmt.Sprintf("%s have the volume mode %s; ask for that", of, v.Spec.VolumeMode))
	case !n.Block && asked != "" && asked != v.Spec.Protocol:
		return volume.Invalid("parameters", fmt.Sprintf("%s are reached over %s, and this claim's volume would be over %s",
			of, v.Spec.Protocol, asked))
	case n.Shared && v.Spec.Protocol != v1alpha1.NFS && !n.Block:
		return volume.Invalid("volume_capabilities", fmt.Sprintf("%s are reached over %s, which several nodes cannot write to",
			of, v.Spec.Protocol))
	case n.FSType != "" && v.Spec.FSType != "" && n.FSType != v.Spec.FSType:
		return volume.Invalid("volume_capabilities", fmt.Sprintf("%s have the file system %s; ask for that", of, v.Spec.FSType))
	}
	if rounded(v, n.Required) < min(size, v.Spec.Size.Value()) {
		return volume.Invalid("capacity_range", fmt.Sprintf("%s take %s; ask for at least that", of, sizeText(size)))
	}
	if err := within(array.Size(size), n.Limit, unitOf(kind)); err != nil {
		return err
	}
	if err := t.near(ctx, v, n); err != nil {
		return err
	}
	return t.unnamed(ctx, v)
}

// rounded is the size that a volume gets for a claim that asks for some bytes.
func rounded(v *v1alpha1.PoolVolume, bytes int64) int64 {
	return array.Size(bytes).Up(unitOf(pools.Protocol(v.Spec.Protocol).Kind())).Bytes()
}

// unnamed waits until the PersistentVolume of the deleted claim is gone. Kubernetes may still ask for the deletion
// of its volume, by the handle that the next one has, too.
func (t *task) unnamed(ctx context.Context, v *v1alpha1.PoolVolume) error {
	for _, name := range persistentVolumes(v) {
		pv := &corev1.PersistentVolume{}
		err := t.Resources.Get(ctx, client.ObjectKey{Name: name}, pv)
		if client.IgnoreNotFound(err) != nil {
			return env.KubernetesError(err, "read the PersistentVolume "+name)
		}
		if err == nil && namesVolume(pv, v) {
			return rules.Errorf(volume.ErrUnavailable,
				"the PersistentVolume %s of the deleted claim still names volume %s; try again once it is gone",
				name, v.Name)
		}
	}
	return nil
}

// bind gives the resource of a retained volume to a claim, unless it has changed meanwhile. What it was is kept in
// an annotation.
func (t *task) bind(ctx context.Context, v *v1alpha1.PoolVolume, m *poolmessages.RestoreVolume) error {
	was := rules.Former{
		Claim: v.Spec.ClaimRef.DeepCopy(), RequestName: v.Spec.RequestName, Lifespan: rules.LifespanFromSpec(v.Spec.Lifespan),
		Size: v.Spec.Size.Value(),
	}
	text, err := json.Marshal(was)
	if err != nil {
		return fmt.Errorf("write down what volume %s was: %w", v.Name, err)
	}
	if v.Annotations == nil {
		v.Annotations = map[string]string{}
	}
	v.Annotations[v1alpha1.RestoredFromAnnotation] = string(text)
	v.Spec.RequestName = m.New.Name
	isFor(v, &claim{ClaimOf: m.For})
	v.Spec.Size = rules.Quantity(max(rounded(v, m.New.Required), v.Status.Capacity.Value()))
	err = t.Resources.Update(ctx, v)
	switch {
	case err == nil:
		t.Note(v)
		return nil
	case apierrors.IsConflict(err):
		return rules.Errorf(volume.ErrBusy, "volume %s has changed while it was to be given to claim %s; try again", v.Name, m.For.Name)
	}
	return t.notWritten(err, "give the PoolVolume "+v.Name+" to claim "+m.For.Name)
}

// unbind takes a volume back from a claim that does not get it after all.
func (t *task) unbind(ctx context.Context, v *v1alpha1.PoolVolume) error {
	return t.writeSpec(ctx, v, func() {
		was := rules.FormerOf(v)
		if was == nil {
			return
		}
		delete(v.Annotations, v1alpha1.RestoredFromAnnotation)
		v.Spec.RequestName, v.Spec.Lifespan = was.RequestName, rules.LifespanToSpec(was.Lifespan)
		if was.Claim != nil {
			v.Spec.ClaimRef = was.Claim
		}
		v.Spec.Size = v.Status.Capacity
	})
}

// handOver makes a bound volume as large as its claim wants it, and Ready.
func (t *task) handOver(ctx context.Context, v *v1alpha1.PoolVolume) error {
	err := t.hand(ctx, v)
	if errors.Is(err, volume.ErrNoSpace) && !rules.IsOpen(err) {
		if undone := t.unbind(ctx, v); undone != nil {
			return rules.Wrapf(volume.ErrUncertain, errors.Join(err, undone), "volume %s cannot be taken back from its claim", v.Name)
		}
		return err
	}
	if err != nil {
		err = stillOpen(err, "restore volume "+v.Name)
		t.unfinished = err
	}
	return err
}

func (t *task) hand(ctx context.Context, v *v1alpha1.PoolVolume) error {
	pool, err := t.UsePool(ctx, v.Spec.PoolName)
	if err != nil {
		return err
	}
	if err := t.growing(v); err != nil {
		return err
	}
	if v.Spec.Size.Cmp(v.Status.Capacity) > 0 {
		if err := t.growWithRoom(ctx, v); err != nil {
			return err
		}
	}
	if err := t.comments(ctx, v, v.Status.ID, pool, nil); err != nil {
		return err
	}
	was, since := rules.FormerOf(v), v.Status.RetainedSince
	if err := t.writeStatus(ctx, v, func() {
		v.Status.State, v.Status.Message, v.Status.RetainedSince, v.Status.RetainedUntil = v1alpha1.VolumeReady, "", nil, nil
		v.Status.ObservedGeneration = v.Generation
	}); err != nil {
		return err
	}
	of := "a claim"
	if was != nil && was.Claim != nil {
		of = "claim " + was.Claim.Name
	}
	if since != nil {
		of += ", which was deleted at " + since.UTC().Format(time.RFC3339) + ","
	}
	t.tellBoth(v, string(pools.Restored), fmt.Sprintf("the data of %s are back: volume %s, %s%s", of, v.Name, v.Status.Capacity.String(),
		t.whereabouts(ctx, v)))
	t.Metrics.RetainedEnded(string(pools.Restored))
	return nil
}

// finishGiving goes on after a crash. A claim that is gone meanwhile does not get the volume.
func (t *task) finishGiving(ctx context.Context, v *v1alpha1.PoolVolume) error {
	if ref := v.Spec.ClaimRef; ref != nil && ref.UID != "" {
		c, err := t.readClaim(ctx, pools.Claim{Namespace: ref.Namespace, Name: ref.Name})
		if err != nil {
			return err
		}
		if c == nil || c.UID != string(ref.UID) {
			return t.unbind(ctx, v)
		}
	}
	if err := t.handOver(ctx, v); err != nil && rules.IsOpen(err) {
		return err
	}
	return nil
}
