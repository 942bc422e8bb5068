package csi

import (
	"context"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestCallsWaitUntilItServes, or until their own end; who it is it answers from the start.
func TestCallsWaitUntilItServes(t *testing.T) {
	serving := make(chan struct{})
	hold := (&Driver{cfg: Config{Serving: serving}}).hold()
	handled := 0
	call := func(ctx context.Context, req any) codes.Code {
		_, err := hold(ctx, req, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) {
			handled++
			return nil, nil
		})
		return status.Code(err)
	}
	if code := call(t.Context(), &csi.GetPluginInfoRequest{}); code != codes.OK || handled != 1 {
		t.Errorf("GetPluginInfo: %s, handled %d times", code, handled)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, req := range []any{&csi.ProbeRequest{}, &csi.CreateVolumeRequest{}, &csi.ListVolumesRequest{}} {
		if code := call(ended, req); code != codes.Unavailable || handled != 1 {
			t.Errorf("%T: %s, handled %d times", req, code, handled)
		}
	}
	waiting := make(chan codes.Code, 1)
	go func() { waiting <- call(t.Context(), &csi.ProbeRequest{}) }()
	close(serving)
	if code := <-waiting; code != codes.OK || handled != 2 {
		t.Errorf("once it serves: %s, handled %d times", code, handled)
	}
}
