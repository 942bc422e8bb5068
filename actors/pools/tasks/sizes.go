package tasks

import (
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// unitOf is what volumes in pools of a kind are whole multiples of.
func unitOf(kind pools.Kind) array.Size { return array.Size(kind.Unit()) }

// sizeOf returns the size of a new volume: whole units within the bounds, and not less than the source.
func sizeOf(n pools.NewVolume, from *source) (array.Size, error) {
	unit := unitOf(n.Kind)
	size := max(array.Size(n.Required), 1)
	if from != nil {
		size = max(size, from.size)
	}
	size = size.Up(unit)
	return size, within(size, n.Limit, unit)
}

// sizeFor is what the array is asked for, for a volume whose resource may have been made by hand.
func sizeFor(v *v1alpha1.PoolVolume) array.Size {
	return array.Size(v.Spec.Size.Value()).Up(unitOf(pools.Protocol(v.Spec.Protocol).Kind()))
}

// within refuses a size above a limit in bytes.
func within(size array.Size, limit int64, unit array.Size) error {
	if limit > 0 && size.Bytes() > limit {
		return rules.Errorf(pools.ErrOutOfRange, "the size would be %s (the pools count in units of %s), more than limit_bytes %d", size, unit,
			limit)
	}
	return nil
}
