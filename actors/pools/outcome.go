package pools

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// problem is an error of one of internal/model/volume's kinds in words of its own: the kinds' texts are about
// mounts and directories.
type problem struct {
	// kind is such as [volume.ErrUncertain].
	kind  error
	text  string
	cause error
}

// Error returns the text, and the cause.
func (p *problem) Error() string {
	if p.cause == nil {
		return p.text
	}
	return p.text + ": " + p.cause.Error()
}

// Is reports whether target is the kind.
func (p *problem) Is(target error) bool { return target == p.kind }

// Unwrap returns the cause.
func (p *problem) Unwrap() error { return p.cause }

// problemf makes an error of a kind.
func problemf(kind error, format string, about ...any) error {
	return &problem{kind: kind, text: fmt.Sprintf(format, about...)}
}

// because makes an error of a kind that has a cause.
func because(kind, cause error, format string, about ...any) error {
	return &problem{kind: kind, text: fmt.Sprintf(format, about...), cause: cause}
}

// kubernetesError makes an error of a call of the Kubernetes API. None is final: an answer can be lost
// there too.
func kubernetesError(err error, doing string) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return because(volume.ErrBusy, err, "%s: it has changed meanwhile; try again", doing)
	}
	return because(volume.ErrUnavailable, err, "%s: the Kubernetes API refuses", doing)
}

// ground is what a pool is on, for people.
func (e *environment) ground(pool string) string {
	if e.uuidOf(pool) != "" {
		return "the disk of pool " + pool
	}
	return "the array of pool " + pool
}

// medium is what a volume is on, for people: an array, or a disk of a node.
func medium(v *v1alpha1.PoolVolume) string { return mediumOf(kindOfVolume(v)) }

func mediumOf(kind pools.Kind) string {
	if kind == pools.KindLocal {
		return "disk"
	}
	return "array"
}

// arrayError makes an error of a call of an array. None of those that it makes tells that nothing was
// done, except that something is in use.
func (t *task) arrayError(pool string, err error, doing string) error {
	doing += " on " + t.ground(pool)
	switch {
	case errors.Is(err, array.ErrUncertain):
		t.doubtIfUnreachable(pool, err)
		return because(volume.ErrUncertain, err, "%s", doing)
	case errors.Is(err, array.ErrUnreachable):
		t.doubt(pool, err)
		return because(volume.ErrUnavailable, err, "%s", doing)
	case errors.Is(err, array.ErrBusy):
		return because(volume.ErrBusy, err, "%s", doing)
	case errors.Is(err, array.ErrAttached), errors.Is(err, array.ErrHasSnapshots):
		return because(pools.ErrInUse, err, "%s", doing)
	case errors.Is(err, context.Canceled):
		return because(volume.ErrUncertain, err, "%s: the controller is stopping", doing)
	}
	return because(volume.ErrUncertain, err, "%s", doing)
}

func (t *task) doubtIfUnreachable(pool string, err error) {
	if errors.Is(err, array.ErrUnreachable) {
		t.doubt(pool, err)
	}
}
