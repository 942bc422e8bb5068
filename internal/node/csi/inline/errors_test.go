package inline

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/volume"
)

func TestCodeOf(t *testing.T) {
	// final: the kubelet assumes that the volume is not mounted and may never unpublish it,
	// so the code must not be used while something may be mounted.
	for _, tt := range []struct {
		err   error
		want  codes.Code
		final bool
	}{
		{nil, codes.OK, true},
		{volume.Invalid("volume_id", "is missing"), codes.InvalidArgument, true},
		{volume.ErrConflict, codes.AlreadyExists, true},
		{volume.ErrOtherTarget, codes.FailedPrecondition, true},
		{volume.ErrForeignMount, codes.Aborted, false},
		{volume.ErrNotFound, codes.NotFound, true},
		{volume.ErrFailed, codes.Internal, true},
		{volume.ErrUncertain, codes.Aborted, false},
		{volume.ErrUnfinished, codes.Aborted, false},
		{volume.ErrBusy, codes.Aborted, false},
		{volume.ErrNoSpace, codes.ResourceExhausted, false},
		{volume.ErrExhausted, codes.ResourceExhausted, false},
		{volume.ErrNotAttached, codes.ResourceExhausted, false},
		{volume.ErrUnavailable, codes.Unavailable, false},
		{context.DeadlineExceeded, codes.DeadlineExceeded, false},
		{context.Canceled, codes.Canceled, false},
		{errors.New("something else"), codes.Unknown, true},
		{fmt.Errorf("%w: %w", volume.ErrUncertain, volume.ErrFailed), codes.Aborted, false},
		{fmt.Errorf("%w: %w", volume.ErrUnfinished, volume.ErrNoSpace), codes.Aborted, false},
		{fmt.Errorf("%w: %w", volume.ErrFailed, volume.ErrNoSpace), codes.ResourceExhausted, false},
	} {
		got := codeOf(tt.err)
		if got != tt.want {
			t.Errorf("%v: code %s, want %s", tt.err, got, tt.want)
		}
		if isFinal(got) != tt.final {
			t.Errorf("%v: code %s is final for the kubelet: %t, want %t", tt.err, got, isFinal(got), tt.final)
		}
		if wrapped := fmt.Errorf("publish: %w", tt.err); tt.err != nil && status.Code(edge.StatusOf(wrapped, codeOf)) != tt.want {
			t.Errorf("%v: status %v, want code %s", wrapped, edge.StatusOf(wrapped, codeOf), tt.want)
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
