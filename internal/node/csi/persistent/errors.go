package persistent

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// codeOf returns the gRPC code of an error. After Aborted, Unavailable, ResourceExhausted, Canceled and
// DeadlineExceeded the kubelet takes it that the volume may be staged or published, and undoes that
// later. After every other code it takes it that it is not (its isFinalError). So an error that is both
// open and final is open, and one of no known kind is too.
//
// Of an expansion the kubelet takes InvalidArgument, NotFound and OutOfRange as impossible for ever, and
// FailedPrecondition as impossible while a pod uses the volume.
func codeOf(err error) codes.Code {
	switch {
	case err == nil:
		return codes.OK
	// Open.
	case errors.Is(err, volume.ErrUncertain), errors.Is(err, volume.ErrBusy), errors.Is(err, volume.ErrForeignMount):
		return codes.Aborted
	case errors.Is(err, volume.ErrUnavailable):
		return codes.Unavailable
	case errors.Is(err, volume.ErrNoSpace):
		return codes.ResourceExhausted
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	// Final.
	case errors.Is(err, volume.ErrInvalid):
		return codes.InvalidArgument
	case errors.Is(err, volume.ErrConflict):
		return codes.AlreadyExists
	case errors.Is(err, volume.ErrOtherTarget), errors.Is(err, volume.ErrNotStaged):
		return codes.FailedPrecondition
	case errors.Is(err, pools.ErrOutOfRange):
		return codes.OutOfRange
	case errors.Is(err, volume.ErrNotFound):
		return codes.NotFound
	case errors.Is(err, volume.ErrFailed):
		return codes.Internal
	}
	return codes.Aborted
}
