package kubelet

import (
	"context"
	"maps"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/testbed"
)

// capabilities asks what the node service can do. A kubelet asks again for each
// question that it has.
func (c client) capabilities(ctx context.Context, v *Volume) (capabilities, error) {
	can := make(capabilities)
	err := c.call(ctx, v, history.GetCapabilities, 0, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		answer, err := csi.NewNodeClient(conn).NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
		for _, one := range answer.GetCapabilities() {
			can[one.GetRpc().GetType()] = true
		}
		return err
	})
	return can, err
}

type capabilities map[csi.NodeServiceCapability_RPC_Type]bool

func (c capabilities) staging() bool {
	return c[csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME]
}

// access is the volume capability of a volume: a ReadWriteOnce one, which is what
// an inline volume is too, or a ReadWriteMany one.
func (c capabilities) access(v *Volume) *csi.VolumeCapability {
	mode := csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	if c[csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER] {
		mode = csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	}
	return capabilityOf(v, mode)
}

// capabilityOf is the volume capability of a volume. The mode is that of a
// ReadWriteOnce one.
func capabilityOf(v *Volume, mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	if v.Plan.Shared {
		mode = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	}
	c := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
	}
	if v.Plan.Block {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	}
	return c
}

// podInfo is what a driver with podInfoOnMount gets in the volume context beside what every inline volume has.
func podInfo(v *Volume) map[string]string {
	context := map[string]string{
		"csi.storage.k8s.io/pod.name":            v.Pod.Plan.Name,
		"csi.storage.k8s.io/pod.namespace":       v.Pod.Plan.Namespace,
		"csi.storage.k8s.io/serviceAccount.name": "default",
	}
	if v.Plan.Persistent {
		context["csi.storage.k8s.io/ephemeral"] = "false"
	}
	if v.Plan.OnFailure {
		context["retain"] = "OnFailure"
	}
	maps.Copy(context, v.Plan.Attributes)
	return context
}

func (c client) publish(ctx context.Context, v *Volume, giveUp time.Duration, r *csi.NodePublishVolumeRequest) error {
	return c.call(ctx, v, history.Publish, giveUp, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewNodeClient(conn).NodePublishVolume(ctx, r)
		return err
	})
}

func (c client) unpublish(ctx context.Context, v *Volume, giveUp time.Duration) error {
	return c.call(ctx, v, history.Unpublish, giveUp, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewNodeClient(conn).NodeUnpublishVolume(ctx, testbed.Unpublish(v.Plan.ID, v.Story.Target))
		return err
	})
}

func (c client) stage(ctx context.Context, v *Volume, r *csi.NodeStageVolumeRequest) error {
	return c.call(ctx, v, history.Stage, 0, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewNodeClient(conn).NodeStageVolume(ctx, r)
		return err
	})
}

func (c client) unstage(ctx context.Context, v *Volume, path string) error {
	return c.call(ctx, v, history.Unstage, 0, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewNodeClient(conn).NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{
			VolumeId:          v.Plan.ID,
			StagingTargetPath: path,
		})
		return err
	})
}

// nodeID asks the driver by which ID it knows the node.
func (c client) nodeID(ctx context.Context) (string, error) {
	var id string
	err := c.dial(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		answer, err := csi.NewNodeClient(conn).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
		id = answer.GetNodeId()
		return err
	})
	return id, err
}
