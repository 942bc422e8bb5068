package csi

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// hold lets calls wait until the driver serves, or until their deadline. The sidecars of a replica that does
// not lead are held at their first Probe: they end when they find no socket for half a minute, and ask again
// each second when the answer is that it is not ready.
func (d *Driver) hold() grpc.UnaryServerInterceptor {
	if d.cfg.Serving == nil {
		return nil
	}
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		switch req.(type) {
		case *csi.GetPluginInfoRequest, *csi.GetPluginCapabilitiesRequest, *csi.ControllerGetCapabilitiesRequest:
			return handler(ctx, req) // these are the same for all replicas
		}
		select {
		case <-d.cfg.Serving:
			return handler(ctx, req)
		case <-ctx.Done():
			return nil, status.Error(codes.Unavailable, "this replica does not serve; another one may lead, or it is starting")
		}
	}
}
