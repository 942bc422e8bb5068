package tasks

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// growVolume makes a volume at least as large as required. The size that is wanted is in the resource
// before the array is asked for it.
func (t *task) growVolume(ctx context.Context, required, limit int64) (pools.Volume, error) {
	v := &v1alpha1.PoolVolume{}
	found, err := t.read(ctx, t.name, v)
	switch {
	case err != nil:
		return pools.Volume{}, err
	case !found:
		return pools.Volume{}, rules.Errorf(volume.ErrNotFound, "there is no PoolVolume %s", t.name)
	case v.DeletionTimestamp != nil:
		return pools.Volume{}, rules.Errorf(volume.ErrBusy, "volume %s is being deleted", t.name)
	case v.Status.State != v1alpha1.VolumeReady:
		return pools.Volume{}, rules.Errorf(volume.ErrBusy, "volume %s cannot grow now, its state is %q", t.name, v.Status.State)
	}
	if err := t.growing(v); err != nil {
		return pools.Volume{}, err
	}
	unit := unitOf(pools.Protocol(v.Spec.Protocol).Kind())
	size := array.Size(max(required, v.Status.Capacity.Value())).Up(unit)
	if err := within(size, limit, unit); err != nil {
		return pools.Volume{}, err
	}
	if want := resource.NewQuantity(size.Bytes(), resource.BinarySI); v.Spec.Size.Cmp(*want) != 0 {
		if err := t.writeSpec(ctx, v, func() { v.Spec.Size = *want }); err != nil {
			return pools.Volume{}, err
		}
	}
	if err := t.finishGrowth(ctx, v); err != nil {
		return pools.Volume{}, err
	}
	return t.describeVolume(v), nil
}

// growing refuses to grow a volume that an earlier run may have begun to grow: the array may still carry
// that out, and a second request would add to it.
func (t *task) growing(v *v1alpha1.PoolVolume) error {
	if !t.Early() || v.Spec.Size.Cmp(v.Status.Capacity) <= 0 {
		return nil
	}
	t.unfinished = rules.Errorf(volume.ErrUncertain, "volume %s may be growing on its %s, by a request of an earlier run of the controller; "+
		"try again", v.Name, rules.MediumOfVolume(v))
	return t.unfinished
}

// finishGrowth makes a volume as large as its resource says. Where its array has no room, the resource
// says the size that the volume has again, so that it does not grow later, unasked.
func (t *task) finishGrowth(ctx context.Context, v *v1alpha1.PoolVolume) error {
	if v.Spec.Size.Cmp(v.Status.Capacity) <= 0 {
		return nil
	}
	err := t.growWithRoom(ctx, v)
	refused := errors.Is(err, volume.ErrNoSpace) || errors.Is(err, pools.ErrOutOfRange)
	if refused {
		if undone := t.writeSpec(ctx, v, func() { v.Spec.Size = v.Status.Capacity }); undone != nil {
			err = rules.Wrapf(volume.ErrUncertain, errors.Join(err, undone), "the size in the resource of volume %s is not put back", t.name)
		}
	}
	if err != nil && !refused || errors.Is(err, volume.ErrUncertain) {
		t.unfinished = err
	}
	return err
}

// growWithRoom grows a volume on its array. Where that has no room, retained volumes of the pool make some.
func (t *task) growWithRoom(ctx context.Context, v *v1alpha1.PoolVolume) error {
	err := t.growOnArray(ctx, v)
	if !errors.Is(err, volume.ErrNoSpace) || rules.IsOpen(err) {
		return err
	}
	defer func() { t.Release(t.name, err == nil) }()
	ask := poolmessages.ReservePool{
		Volume: t.name, Class: v.Spec.ClassName, Pool: v.Spec.PoolName, Bytes: v.Spec.Size.Value() - v.Status.Capacity.Value(),
		Kind: rules.KindOfVolume(v), Refused: []string{v.Spec.PoolName}, Growth: true,
	}
	for range refusals {
		if _, none := t.Reserve(ctx, ask); none != nil {
			return err
		}
		if err = t.growOnArray(ctx, v); !errors.Is(err, volume.ErrNoSpace) || rules.IsOpen(err) {
			return err
		}
	}
	return err
}

func (t *task) growOnArray(ctx context.Context, v *v1alpha1.PoolVolume) error {
	pool, err := t.UsePool(ctx, v.Spec.PoolName)
	if err != nil {
		return err
	}
	have, err := pool.Array.GrowVolume(ctx, v.Status.ID, sizeFor(v))
	switch {
	case errors.Is(err, array.ErrNoRoom) && !errors.Is(err, array.ErrUncertain):
		return rules.Wrapf(volume.ErrNoSpace, err, "grow volume %s in pool %s", v.Name, pool.Name)
	case errors.Is(err, array.ErrRefused):
		return rules.Wrapf(pools.ErrOutOfRange, err, "grow volume %s in pool %s", v.Name, pool.Name)
	case err != nil:
		return t.arrayError(pool.Name, err, "grow volume "+v.Name)
	}
	return t.writeStatus(ctx, v, func() { v.Status.Capacity = *resource.NewQuantity(have.Size.Bytes(), resource.BinarySI) })
}
