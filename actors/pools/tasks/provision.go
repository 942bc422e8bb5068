package tasks

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// provision makes the volume of a resource that an earlier call, or an earlier run, has made.
func (t *task) provision(ctx context.Context, v *v1alpha1.PoolVolume) error {
	switch v.Status.State {
	case v1alpha1.VolumeReady:
		return nil
	case v1alpha1.VolumeFailed:
		return rules.Errorf(volume.ErrUnavailable, "volume %s has failed: %s", v.Name, v.Status.Message)
	case v1alpha1.VolumeRetained, v1alpha1.VolumeDeleting:
		return notAnymore(v)
	}
	pool, err := t.UsePool(ctx, v.Spec.PoolName)
	if err != nil {
		t.unfinished = err
		return err
	}
	if madeByHand(v) {
		if err := t.takeName(ctx, v); err != nil {
			return err
		}
	}
	if err := t.keep(ctx, v); err != nil {
		return err
	}
	return t.make(ctx, v, pool, true)
}

// make makes the volume of a resource on the array and writes down what it is. After a final error the
// resource is gone; after any other one it is tried again. look is false where the array had no volume of
// the name a moment ago.
func (t *task) make(ctx context.Context, v *v1alpha1.PoolVolume, pool poolmessages.UsablePool, look bool) error {
	err := t.makeOnArray(ctx, v, pool, look)
	if err != nil && (rules.IsFinal(err) || isUnwritable(err)) {
		err = t.giveUp(ctx, v, pool, err)
	}
	if err != nil && !rules.IsFinal(err) {
		err = stillOpen(err, "make volume "+v.Name)
		t.unfinished = err
	}
	return err
}

// stillOpen makes an error that is not final one that callers do not take for final: as long as there is
// the resource, the operation goes on.
func stillOpen(err error, doing string) error {
	if errors.Is(err, pools.ErrInUse) {
		return rules.Wrapf(volume.ErrBusy, err, "%s", doing)
	}
	return err
}

// isUnwritable reports whether a node says that nothing can be written to its disk. There is no volume, unless it has been
// begun before.
func isUnwritable(err error) bool {
	return errors.Is(err, local.ErrUnwritable) && !errors.Is(err, volume.ErrUncertain)
}

func (t *task) makeOnArray(ctx context.Context, v *v1alpha1.PoolVolume, pool poolmessages.UsablePool, look bool) error {
	have, err := t.place(ctx, v, pool, look)
	if err != nil {
		return err
	}
	if err := t.ours(v, have, perhapsUnmarked); err != nil {
		return err
	}
	if have.Comment == "" {
		if err := t.mark(ctx, v, have, pool); err != nil {
			return err
		}
	}
	if !have.Usable {
		if v.Status.ID != have.ID {
			if err := t.writeStatus(ctx, v, func() { describe(v, have, provisioningState(v)) }); err != nil {
				return err
			}
		}
		return rules.Errorf(volume.ErrBusy, "volume %s is not usable yet, its status on the %s is %q", v.Name, rules.MediumOfVolume(v),
			have.Status)
	}
	if want := sizeFor(v); have.Size < want {
		if look && t.Early() {
			return rules.Errorf(volume.ErrUncertain, "the copy %s may be growing on its %s, by a request of an earlier run of the controller",
				v.Name, rules.MediumOfVolume(v))
		}
		if have, err = pool.Array.GrowVolume(ctx, have.ID, want); err != nil {
			return t.arrayError(pool.Name, err, "grow the copy "+v.Name)
		}
	}
	if err := t.writeStatus(ctx, v, func() { describe(v, have, v1alpha1.VolumeReady) }); err != nil {
		return err
	}
	t.tell(v, "VolumeCreated", "made as "+have.ID+" in pool "+v.Spec.PoolName)
	return nil
}

// mark writes the comment of a volume whose making did not come to that. A volume without one is better
// than none, so an array that refuses the comment keeps it as it is.
func (t *task) mark(ctx context.Context, v *v1alpha1.PoolVolume, have array.Volume, pool poolmessages.UsablePool) error {
	err := pool.Array.CommentVolume(ctx, have.ID, t.comment(v).String())
	if err == nil {
		return nil
	}
	for _, open := range []error{array.ErrUncertain, array.ErrUnreachable, array.ErrBusy, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, open) {
			return t.arrayError(pool.Name, err, "mark volume "+v.Name)
		}
	}
	t.warn(v, "NotMarked", err)
	return nil
}

// provisioningState is the state of a volume that is being made.
func provisioningState(v *v1alpha1.PoolVolume) v1alpha1.VolumeState {
	if v.Spec.Source != nil {
		return v1alpha1.VolumeCloning
	}
	return v1alpha1.VolumeProvisioning
}

// describe writes what is on the array into a resource's status.
func describe(v *v1alpha1.PoolVolume, have array.Volume, state v1alpha1.VolumeState) {
	v.Status.State, v.Status.ID, v.Status.GroupID, v.Status.ExportPath = state, have.ID, have.Group, have.Export
	v.Status.Capacity = *resource.NewQuantity(have.Size.Bytes(), resource.BinarySI)
	v.Status.Message, v.Status.ObservedGeneration = "", v.Generation
}

// place has the array make the volume; one of its name is returned as it is. look is false where there
// was none a moment ago.
func (t *task) place(ctx context.Context, v *v1alpha1.PoolVolume, pool poolmessages.UsablePool, look bool) (array.Volume, error) {
	if look {
		have, err := pool.Array.VolumeNamed(ctx, v.Name)
		if err == nil {
			return have, nil
		}
		if !errors.Is(err, array.ErrNotFound) {
			return have, t.arrayError(pool.Name, err, "look for volume "+v.Name)
		}
	}
	comment, flags := t.comment(v).String(), v.Spec.Flags
	if v.Spec.Source == nil {
		have, err := pool.Array.CreateVolume(ctx, array.NewVolume{
			Name: v.Name, PoolID: pool.PoolID, Comment: comment, Size: sizeFor(v), Block: rules.OnDevice(v), FSType: v.Spec.FSType,
			Compress: flags.Compress, Dedupe: flags.Dedupe, Encrypt: flags.Encrypt, Options: flags.Extra,
			NameFree: true,
		})
		err = t.placeError(pool.Name, err, "create volume "+v.Name)
		t.took(ctx, v, err)
		return have, err
	}
	from, err := t.findSource(ctx, pools.Source{Snapshot: v.Spec.Source.Snapshot, Volume: v.Spec.Source.Volume})
	if err != nil {
		return array.Volume{}, err
	}
	group, err := from.groupOn(ctx, pool.Array)
	if err != nil {
		return array.Volume{}, t.placeError(pool.Name, err, "look for the source of the copy "+v.Name)
	}
	have, err := pool.Array.CloneVolume(ctx, array.NewClone{
		Name: v.Name, Comment: comment, Group: group, SnapshotID: from.snapshotID, NameFree: true,
	})
	return have, t.placeError(pool.Name, err, "create the copy "+v.Name)
}

// placeError tells the errors after which nothing is on the array from the others.
func (t *task) placeError(pool string, err error, doing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, array.ErrUncertain):
	case errors.Is(err, array.ErrNoRoom):
		return rules.Wrapf(volume.ErrNoSpace, err, "%s in pool %s", doing, pool)
	case errors.Is(err, array.ErrNotFound):
		return rules.Wrapf(volume.ErrNotFound, err, "%s in pool %s", doing, pool)
	case errors.Is(err, array.ErrRefused), errors.Is(err, array.ErrDeclined):
		return rules.Wrapf(volume.ErrInvalid, err, "%s in pool %s", doing, pool)
	case errors.Is(err, array.ErrExists):
		return rules.Wrapf(volume.ErrConflict, err, "%s in pool %s", doing, pool)
	}
	return t.arrayError(pool, err, doing)
}

// giveUp takes the resource back after an error that says that its volume is not to be, and returns
// that error. Where the array has the volume all the same, or it cannot be told, the error is not final. That a node
// cannot use its disk is final where nothing is on it.
func (t *task) giveUp(ctx context.Context, v *v1alpha1.PoolVolume, pool poolmessages.UsablePool, cause error) error {
	have, err := pool.Array.VolumeNamed(ctx, v.Name)
	if err == nil && t.ours(v, have, perhapsUnmarked) == nil {
		if !rules.IsFinal(cause) {
			return cause // it goes on there
		}
		return rules.Wrapf(volume.ErrUncertain, cause, "volume %s is on the %s all the same", v.Name, rules.MediumOfVolume(v))
	}
	if err != nil && !errors.Is(err, array.ErrNotFound) {
		return errors.Join(t.arrayError(pool.Name, err, "look for volume "+v.Name), cause)
	}
	t.warn(v, "CreateFailed", cause)
	if err := t.remove(ctx, v); err != nil {
		return rules.Wrapf(volume.ErrUncertain, errors.Join(cause, err), "volume %s was not made, and its resource is not deleted", t.name)
	}
	return elsewhere(rules.KindOfVolume(v), cause)
}

// finishVolume makes true what the resource of a volume says.
func (t *task) finishVolume(ctx context.Context) error {
	v := &v1alpha1.PoolVolume{}
	found, err := t.read(ctx, t.name, v)
	switch {
	case err != nil || !found:
		return err
	}
	t.Note(v)
	switch {
	case v.DeletionTimestamp != nil:
		return t.finishRemoval(ctx, v)
	case v.Spec.Management == v1alpha1.External || v.Status.State == v1alpha1.VolumeFailed:
		return nil
	case rules.IsEnding(v):
		return t.finishEnd(ctx, v)
	case rules.IsGiven(v):
		return t.finishGiving(ctx, v)
	case v.Status.State == v1alpha1.VolumeRetained:
		if !rules.UnfinishedRetained(v) {
			return nil
		}
		return t.finishRetained(ctx, v)
	case v.Status.State == v1alpha1.VolumeReady:
		if err := t.follow(ctx, v); err != nil {
			return err
		}
		if err := t.growing(v); err != nil {
			return err
		}
		return t.finishGrowth(ctx, v)
	}
	err = t.provision(ctx, v)
	if err != nil && rules.IsFinal(err) {
		return nil // the resource is gone; the next call learns why
	}
	return err
}
