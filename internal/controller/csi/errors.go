package csi

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// codeOf returns the gRPC code of an error. After Aborted, Unavailable, DeadlineExceeded and Canceled
// the sidecars take it that the call may still come true, and repeat it until they know. After every
// other code the provisioner takes it that there is no volume, and deletes none (its checkError). So an
// error that is both open and final is open, and one of no known kind is too.
func codeOf(err error) codes.Code {
	switch {
	case err == nil:
		return codes.OK
	// Open.
	case errors.Is(err, volume.ErrUncertain), errors.Is(err, volume.ErrBusy):
		return codes.Aborted
	case errors.Is(err, volume.ErrUnavailable):
		return codes.Unavailable
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	// Final.
	case errors.Is(err, volume.ErrInvalid):
		return codes.InvalidArgument
	case errors.Is(err, volume.ErrConflict):
		return codes.AlreadyExists
	case errors.Is(err, pools.ErrInUse):
		return codes.FailedPrecondition
	case errors.Is(err, pools.ErrOutOfRange):
		return codes.OutOfRange
	case errors.Is(err, volume.ErrNoSpace):
		return codes.ResourceExhausted
	case errors.Is(err, volume.ErrNotFound):
		return codes.NotFound
	}
	return codes.Aborted
}
