package persistent

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

func TestCodeOf(t *testing.T) {
	// final: the kubelet takes it that the volume is not staged, and may never unstage it.
	for _, tt := range []struct {
		err   error
		want  codes.Code
		final bool
	}{
		{nil, codes.OK, true},
		{volume.Invalid("volume_id", "is missing"), codes.InvalidArgument, true},
		{volume.ErrConflict, codes.AlreadyExists, true},
		{volume.ErrOtherTarget, codes.FailedPrecondition, true},
		{volume.ErrNotStaged, codes.FailedPrecondition, true},
		{volume.ErrNotFound, codes.NotFound, true},
		{pools.ErrOutOfRange, codes.OutOfRange, true},
		{volume.ErrFailed, codes.Internal, true},
		{volume.ErrForeignMount, codes.Aborted, false},
		{volume.ErrUncertain, codes.Aborted, false},
		{volume.ErrBusy, codes.Aborted, false},
		{volume.ErrNoSpace, codes.ResourceExhausted, false},
		{volume.ErrUnavailable, codes.Unavailable, false},
		{context.DeadlineExceeded, codes.DeadlineExceeded, false},
		{context.Canceled, codes.Canceled, false},
		{errors.New("something else"), codes.Aborted, false},
		// What is both is open.
		{fmt.Errorf("%w: %w", volume.ErrFailed, volume.ErrUncertain), codes.Aborted, false},
		{fmt.Errorf("%w: %w", volume.ErrFailed, volume.ErrUnavailable), codes.Unavailable, false},
		{fmt.Errorf("%w: %w", volume.ErrNotFound, context.DeadlineExceeded), codes.DeadlineExceeded, false},
		{fmt.Errorf("%w: %w", volume.ErrConflict, volume.ErrBusy), codes.Aborted, false},
	} {
		err := tt.err
		if err != nil {
			err = fmt.Errorf("stage: %w", err)
		}
		got := codeOf(err)
		if got != tt.want {
			t.Errorf("%v: code %s, want %s", tt.err, got, tt.want)
		}
		if isFinal(got) != tt.final {
			t.Errorf("%v: code %s is final for the kubelet: %t, want %t", tt.err, got, isFinal(got), tt.final)
		}
	}
}

// isFinal is the kubelet's isFinalError (kubernetes pkg/volume/csi/csi_client.go).
func isFinal(code codes.Code) bool {
	switch code {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return false
	}
	return true
}
