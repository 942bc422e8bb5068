package inline

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/internal/model/volume"
)

// codeOf returns the gRPC code of an error. The code decides what the kubelet does next (its
// isFinalError). After a final error it assumes that the volume is not mounted and may never
// unpublish it. After Aborted, Unavailable, ResourceExhausted, Canceled and DeadlineExceeded it
// assumes that the volume may be mounted, and always unpublishes it.
func codeOf(err error) codes.Code {
	switch {
	case err == nil:
		return codes.OK
	case errors.Is(err, volume.ErrInvalid):
		return codes.InvalidArgument // final
	case errors.Is(err, volume.ErrConflict):
		return codes.AlreadyExists // final
	case errors.Is(err, volume.ErrOtherTarget):
		return codes.FailedPrecondition // final
	case errors.Is(err, volume.ErrNotFound):
		return codes.NotFound // final
	// Uncertain errors come first: an error that is both is uncertain.
	case errors.Is(err, volume.ErrUncertain), errors.Is(err, volume.ErrUnfinished), errors.Is(err, volume.ErrBusy),
		errors.Is(err, volume.ErrForeignMount):
		return codes.Aborted
	case errors.Is(err, volume.ErrNoSpace), errors.Is(err, volume.ErrNotAttached), errors.Is(err, volume.ErrExhausted):
		return codes.ResourceExhausted
	case errors.Is(err, volume.ErrFailed):
		return codes.Internal // final: it was undone
	case errors.Is(err, volume.ErrUnavailable):
		return codes.Unavailable
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	}
	return codes.Unknown // final
}
