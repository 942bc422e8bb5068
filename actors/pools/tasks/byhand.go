package tasks

import (
	"context"
	"errors"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// madeByHand reports whether a person has made the resource of a volume, of which nothing is known on the
// array yet: it has no finalizer, which the controller's own have from the first moment.
func madeByHand(v *v1alpha1.PoolVolume) bool {
	return !rules.HasFinalizer(v) && v.Status.ID == "" && v.Spec.Management != v1alpha1.External
}

// nameTaken refuses the volume on the array that has the name of a resource made by hand, unless its
// comment says that it is ours.
func (t *task) nameTaken(ctx context.Context, v *v1alpha1.PoolVolume) error {
	pool, err := t.UsePool(ctx, v.Spec.PoolName)
	if err != nil {
		return err
	}
	have, err := pool.Array.VolumeNamed(ctx, v.Name)
	switch {
	case errors.Is(err, array.ErrNotFound):
		return nil
	case err != nil:
		return t.arrayError(pool.Name, err, "look for volume "+v.Name)
	}
	return t.ours(v, have, marked)
}

// takeName lets the resource of a volume that a person has made have its name, or be Failed.
func (t *task) takeName(ctx context.Context, v *v1alpha1.PoolVolume) error {
	taken := t.nameTaken(ctx, v)
	if !errors.Is(taken, volume.ErrConflict) {
		if taken != nil {
			t.unfinished = taken
		}
		return taken
	}
	t.warn(v, "CreateFailed", taken)
	if err := t.writeStatus(ctx, v, func() {
		v.Status.State, v.Status.Message = v1alpha1.VolumeFailed, taken.Error()+"; or delete this PoolVolume"
	}); err != nil {
		return err
	}
	return rules.Errorf(volume.ErrUnavailable, "volume %s has failed: %s", v.Name, v.Status.Message)
}

// admitted asks whether an attachment whose resource says that it is to be made may be. One that may not
// is Failed.
func (t *task) admitted(ctx context.Context, a *v1alpha1.PoolAttachment) (bool, error) {
	_, err := actors.Ask(ctx, t.Root, t.Supervisor(), &poolmessages.MayAttach{Attachment: a.Name})
	if !errors.Is(err, pools.ErrInUse) {
		return err == nil, err
	}
	t.warn(a, "AttachFailed", err)
	return false, t.writeStatus(ctx, a, func() {
		a.Status.State, a.Status.Message = v1alpha1.AttachmentFailed, err.Error()+"; delete this PoolAttachment"
	})
}
