package pools

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// kubernetesError makes an error of a call of the Kubernetes API. None is final: an answer can be lost
// there too.
func kubernetesError(err error, doing string) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return rules.Wrapf(volume.ErrBusy, err, "%s: it has changed meanwhile; try again", doing)
	}
	return rules.Wrapf(volume.ErrUnavailable, err, "%s: the Kubernetes API refuses", doing)
}

// ground is what a pool is on, for people.
func (e *environment) ground(pool string) string {
	if e.uuidOf(pool) != "" {
		return "the disk of pool " + pool
	}
	return "the array of pool " + pool
}

// arrayError makes an error of a call of an array. None of those that it makes tells that nothing was
// done, except that something is in use.
func (t *task) arrayError(pool string, err error, doing string) error {
	doing += " on " + t.ground(pool)
	switch {
	case errors.Is(err, array.ErrUncertain):
		t.doubtIfUnreachable(pool, err)
		return rules.Wrapf(volume.ErrUncertain, err, "%s", doing)
	case errors.Is(err, array.ErrUnreachable):
		t.doubt(pool, err)
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
		t.doubt(pool, err)
	}
}
