package archiver

import (
	"context"
	"errors"
	"fmt"

	"github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/tarball"
)

// Reasons why a volume was not archived, as the metrics have them.
const (
	// noGateway: no gateway has answered in time.
	noGateway = "gateway"
	// refused: a gateway gives no URL for it; for a while if that may change.
	refused = "refused"
	// forbidden: the bucket does not accept the signature.
	forbidden = "forbidden"
	// bucket: the bucket, or the way there, has failed; slow: it has taken too long.
	bucket = "bucket"
	slow   = "slow"
	// tooLarge: the volume is larger than allowed, or does not fit into an index.
	tooLarge = "too_large"
	// noKubelet: the volume, or its pod, has an identifier that no kubelet gives.
	noKubelet = "not_a_kubelets"
	// unreadable: the volume could not be read, or what became of it could not be recorded.
	unreadable = "unreadable"
)

// failure is why a volume was not archived.
type failure struct {
	error
	reason string
	// forGood: it will be the same the next time.
	forGood bool
}

// mayConcernAll reports whether other volumes may fail as well: a gateway that refuses for a while may not reach the bucket.
func (f *failure) mayConcernAll() bool { return f.reason != unreadable }

// Unwrap returns the error behind.
func (f *failure) Unwrap() error { return f.error }

func fail(reason, format string, values ...any) error {
	return &failure{error: fmt.Errorf(format, values...), reason: reason}
}

func failForGood(reason string, err error) error {
	return &failure{error: err, reason: reason, forGood: true}
}

// failureOf says of any error why the volume was not archived. It is nil for a volume that is not to be archived any more: it is
// gone, or published again.
func failureOf(err error) *failure {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, volume.ErrNotRetained), errors.Is(err, volume.ErrGone), errors.Is(err, volume.ErrNotFound):
		return nil
	case errors.Is(err, tarball.ErrTooLarge), errors.Is(err, archived.ErrTooLarge):
		return &failure{error: err, reason: tooLarge, forGood: true}
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{error: err, reason: slow}
	}
	return &failure{error: err, reason: unreadable}
}
