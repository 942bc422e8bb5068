package tasks

import (
	"context"
	"errors"
	"strings"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// mayDelete returns why a resource that a person has deleted has to wait. The resource was noted
// before, so that nothing new begins with it.
func (t *task) mayDelete(ctx context.Context, kind string) error {
	_, err := actors.Ask(ctx, t.Root, t.Supervisor(), &poolmessages.MayDelete{Kind: kind, Name: t.name})
	return err
}

// removeVolume deletes a volume for a call, or retains it: nothing uses it.
func (t *task) removeVolume(ctx context.Context) error {
	v := &v1alpha1.PoolVolume{}
	found, err := t.read(ctx, t.name, v)
	if err != nil || !found {
		return err
	}
	if madeByHand(v) {
		if err := t.nameTaken(ctx, v); err != nil {
			return rules.Wrapf(volume.ErrUncertain, err, "delete volume %s, which a person has made", v.Name)
		}
	}
	if err := t.keep(ctx, v); err != nil {
		return err
	}
	if kept, err := t.retain(ctx, v); kept || err != nil {
		return err
	}
	if gone, err := t.startDeletion(ctx, v); gone || err != nil {
		return err
	}
	return t.clean(ctx, v)
}

// finishRemoval deletes a volume whose resource was deleted, unless something uses or needs it.
func (t *task) finishRemoval(ctx context.Context, v *v1alpha1.PoolVolume) error {
	err := t.mayDelete(ctx, rules.KindVolume)
	if err == nil && v.Spec.Management != v1alpha1.External {
		err = t.needed(ctx, v)
	}
	if err != nil {
		if errors.Is(err, pools.ErrInUse) {
			t.blocked(ctx, v, err)
		}
		return err
	}
	return t.clean(ctx, v)
}

// clean deletes a volume on its array, and lets its resource go.
func (t *task) clean(ctx context.Context, v *v1alpha1.PoolVolume) error {
	if v.Spec.Management != v1alpha1.External {
		if err := t.deleteOnArray(ctx, v); err != nil {
			t.unfinished = err
			t.blocked(ctx, v, err)
			return err
		}
		t.tombstone(v)
	}
	return t.letGo(ctx, v)
}

// deleteOnArray deletes the volume on its array, whether or not its ID was ever written down.
func (t *task) deleteOnArray(ctx context.Context, v *v1alpha1.PoolVolume) error {
	pool, err := t.UsePool(ctx, v.Spec.PoolName)
	if err != nil {
		return err
	}
	have, found, err := t.findOnArray(ctx, v, pool)
	if err != nil || !found {
		return err
	}
	err = pool.Array.DeleteVolume(ctx, have.ID)
	doing := "delete volume " + v.Name
	if errors.Is(err, array.ErrAttached) && len(have.Servers) > 0 {
		doing += ", which is attached to " + strings.Join(have.Servers, ", ") + ","
	}
	if err != nil {
		return t.arrayError(pool.Name, err, doing)
	}
	return nil
}

// findOnArray finds the volume of a resource by its ID, or by its name. One that another cluster has
// made, or that has the ID and neither the name nor the comment, is none: the array was set up anew.
func (t *task) findOnArray(ctx context.Context, v *v1alpha1.PoolVolume, pool poolmessages.UsablePool) (array.Volume, bool, error) {
	if v.Status.ID != "" {
		have, err := pool.Array.Volume(ctx, v.Status.ID)
		if err != nil && !errors.Is(err, array.ErrNotFound) {
			return have, false, t.arrayError(pool.Name, err, "read volume "+v.Name)
		}
		by := t.whose(v, have)
		if err == nil && (have.Name == v.Name && by != byAnotherCluster || by == byThis) {
			return have, true, nil
		}
	}
	have, err := pool.Array.VolumeNamed(ctx, v.Name)
	switch {
	case errors.Is(err, array.ErrNotFound) && v.Status.ID == "" && t.Early():
		return have, false, rules.Errorf(volume.ErrUncertain, "volume %s is not on %s, and may still be made by a request of an "+
			"earlier run of the controller", v.Name, t.Ground(pool.Name))
	case errors.Is(err, array.ErrNotFound):
		return have, false, nil
	case err != nil:
		return have, false, t.arrayError(pool.Name, err, "look for volume "+v.Name)
	}
	switch t.whose(v, have) {
	case byAnotherCluster:
		return have, false, nil
	case byPerson:
		return have, false, rules.Errorf(volume.ErrUncertain, "%s has a volume %s (%s) whose comment does not say that it is "+
			"ours; delete its comment if it is, or rename it", t.Ground(pool.Name), v.Name, have.ID)
	}
	return have, true, nil
}

// blocked says on the resource, and in an event, why it is not deleted yet. It says so once for each
// reason. What cannot be written is said at the next try.
func (t *task) blocked(ctx context.Context, v *v1alpha1.PoolVolume, why error) {
	if v.Status.State == v1alpha1.VolumeDeleting && v.Status.Message == why.Error() {
		return
	}
	t.warn(v, "DeleteBlocked", why)
	if err := t.writeStatus(ctx, v, func() { v.Status.State, v.Status.Message = v1alpha1.VolumeDeleting, why.Error() }); err != nil {
		t.Log.V(1).Info("the reason why a volume is not deleted cannot be written", "resource", t.name, "reason", err.Error())
	}
}
