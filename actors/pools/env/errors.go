package env

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/volume"
)

// KubernetesError makes an error of a call of the Kubernetes API. None is final: an answer can be lost
// there too.
func KubernetesError(err error, doing string) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return rules.Wrapf(volume.ErrBusy, err, "%s: it has changed meanwhile; try again", doing)
	}
	return rules.Wrapf(volume.ErrUnavailable, err, "%s: the Kubernetes API refuses", doing)
}

// Ground is what a pool is on, for people.
func (e *Environment) Ground(pool string) string {
	if e.UUIDOf(pool) != "" {
		return "the disk of pool " + pool
	}
	return "the array of pool " + pool
}
