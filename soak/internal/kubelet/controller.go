package kubelet

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/history"
)

// offersAttach asks whether the driver has a controller service that attaches
// volumes.
func (c client) offersAttach(ctx context.Context) (bool, error) {
	hasController, attaches := false, false
	err := c.dial(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		answer, err := csi.NewIdentityClient(conn).GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{})
		for _, one := range answer.GetCapabilities() {
			if one.GetService().GetType() == csi.PluginCapability_Service_CONTROLLER_SERVICE {
				hasController = true
			}
		}
		return err
	})
	if err != nil || !hasController {
		return false, err
	}
	err = c.dial(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		answer, err := csi.NewControllerClient(conn).ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
		for _, one := range answer.GetCapabilities() {
			if one.GetRpc().GetType() == csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME {
				attaches = true
			}
		}
		return err
	})
	if status.Code(err) == codes.Unimplemented {
		return false, nil
	}
	return attaches, err
}

func (c client) controllerPublish(ctx context.Context, v *Volume, nodeID string) (map[string]string, error) {
	var publishContext map[string]string
	err := c.call(ctx, v, history.ControllerPublish, 0, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		answer, err := csi.NewControllerClient(conn).ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{
			VolumeId:         v.Plan.ID,
			NodeId:           nodeID,
			VolumeCapability: capabilityOf(v, csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER),
		})
		publishContext = answer.GetPublishContext()
		return err
	})
	return publishContext, err
}

func (c client) controllerUnpublish(ctx context.Context, v *Volume, nodeID string) error {
	return c.call(ctx, v, history.ControllerUnpublish, 0, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewControllerClient(conn).ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{
			VolumeId: v.Plan.ID,
			NodeId:   nodeID,
		})
		return err
	})
}
