package tasks

import (
	"context"
	"errors"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// arrayError makes an error of a call of an array. None of those that it makes tells that nothing was
// done, except that something is in use.
func (t *task) arrayError(pool string, err error, doing string) error {
	doing += " on " + t.Ground(pool)
	switch {
	case errors.Is(err, array.ErrUncertain):
		t.doubtIfUnreachable(pool, err)
		return rules.Wrapf(volume.ErrUncertain, err, "%s", doing)
	case errors.Is(err, array.ErrUnreachable):
		t.Doubt(pool, err)
		return rules.Wrapf(volume.ErrUnavailable, err, "%s", doing)
	case errors.Is(err, array.ErrBusy):
		return rules.Wrapf(volume.ErrBusy, err, "%s", doing)
	case errors.Is(err, array.ErrAttached), errors.Is(err, array.ErrHasSnapshots):
		return rules.Wrapf(pools.ErrInUse, err, "%s", doing)
	case errors.Is(err, context.Canceled):
		return rules.Wrapf(volume.ErrUncertain, err, "%s: the controller is stopping", doing)
	}
	return rules.Wrapf(volume.ErrUncertain, err, "%s", doing)
}

func (t *task) doubtIfUnreachable(pool string, err error) {
	if errors.Is(err, array.ErrUnreachable) {
		t.Doubt(pool, err)
	}
}
