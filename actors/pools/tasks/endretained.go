package tasks

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// conditionEnded says, on a retained volume that is being deleted, why: its reason is a [pools.End].
const conditionEnded = "Ended"

// endRetained deletes a retained volume for good, unless it is not retained any more. The reason is on the
// resource before anything is deleted, so that the tombstone has it after a crash, too.
func (t *task) endRetained(ctx context.Context, m *poolmessages.EndRetained) error {
	v := &v1alpha1.PoolVolume{}
	found, err := t.read(ctx, t.name, v)
	switch {
	case err != nil || !found:
		return err
	case v.DeletionTimestamp != nil || rules.IsEnding(v):
		return t.finishEnd(ctx, v)
	case !rules.IsKept(v) || v.Status.RetainedSince == nil || !v.Status.RetainedSince.Time.Equal(m.Since):
		return rules.Errorf(volume.ErrConflict, "volume %s is not the retained one that was to go: its state is %q", v.Name, v.Status.State)
	case m.Reason != pools.Vanished && rules.WholeSeconds(rules.LifespanFromSpec(v.Spec.Lifespan)) > m.Lifespan:
		return rules.Errorf(volume.ErrConflict, "volume %s is to be kept longer than was known when it was to go", v.Name)
	}
	if _, err := t.UsePool(ctx, v.Spec.PoolName); err != nil {
		return err // a claim may still get it back
	}
	ends(v, m.Reason, m.Why)
	// What has changed since it was read may be that the volume stays: that is decided anew, and not written again.
	err = t.Resources.Status().Update(ctx, v)
	switch {
	case apierrors.IsConflict(err):
		return rules.Errorf(volume.ErrBusy, "volume %s has changed while it was to go; it is looked at again", v.Name)
	case err != nil:
		return t.notWritten(err, "change the PoolVolume "+v.Name)
	}
	t.Note(v)
	return t.finishEnd(ctx, v)
}

// ends writes into the status that a retained volume is to be deleted.
func ends(v *v1alpha1.PoolVolume, reason pools.End, why string) {
	v.Status.State, v.Status.Message = v1alpha1.VolumeDeleting, why
	meta.SetStatusCondition(&v.Status.Conditions, metav1.Condition{
		Type: conditionEnded, Status: metav1.ConditionTrue, Reason: string(reason), Message: why, ObservedGeneration: v.Generation,
	})
}

// finishEnd deletes a retained volume whose resource says that it ends.
func (t *task) finishEnd(ctx context.Context, v *v1alpha1.PoolVolume) error {
	if err := t.keep(ctx, v); err != nil {
		return err
	}
	if gone, err := t.startDeletion(ctx, v); gone || err != nil {
		return err
	}
	return t.clean(ctx, v)
}

// tombstone tells, of a retained volume that is deleted on its array, whose it was and why it went.
func (t *task) tombstone(v *v1alpha1.PoolVolume) {
	if v.Status.RetainedSince == nil {
		return
	}
	reason, why := pools.Erased, "a person has deleted its resource"
	if c := meta.FindStatusCondition(v.Status.Conditions, conditionEnded); c != nil {
		reason, why = pools.End(c.Reason), c.Message
	}
	of := "a claim"
	if c := v.Spec.ClaimRef; c != nil {
		of = "the claim " + c.Namespace + "/" + c.Name
	}
	t.tellBoth(v, string(reason), fmt.Sprintf("the retained data of %s (volume %s, %s) are deleted: %s",
		of, v.Name, v.Status.Capacity.String(), why))
	t.Metrics.RetainedEnded(string(reason))
}
