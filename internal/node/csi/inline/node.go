package inline

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/api"
)

// NodePublishVolume makes the volume's data directory and mounts it at the target path.
func (d *Driver) NodePublishVolume(ctx context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	p, err := d.publication(req)
	if err != nil {
		return nil, err
	}
	if err := d.cfg.Volumes.Publish(ctx, p); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume unmounts the volume and removes the target path. The data is retained.
func (d *Driver) NodeUnpublishVolume(ctx context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	id, target, err := d.unpublication(req)
	if err != nil {
		return nil, err
	}
	if err := d.cfg.Volumes.Unpublish(ctx, id, target); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeGetVolumeStats returns the usage of a volume.
func (d *Driver) NodeGetVolumeStats(ctx context.Context, req *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	id, path, err := statsOf(req)
	if err != nil {
		return nil, err
	}
	stats, err := d.cfg.Volumes.Stats(ctx, id, path)
	if err != nil {
		return nil, err
	}
	return edge.Stats(stats)
}

// NodeGetInfo returns the node's ID, its topology and its limit of volumes.
func (d *Driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{
		NodeId:             d.cfg.NodeID,
		MaxVolumesPerNode:  d.cfg.MaxVolumes,
		AccessibleTopology: &csi.Topology{Segments: map[string]string{api.Topology: d.cfg.NodeID}},
	}, nil
}

// NodeGetCapabilities returns the capabilities of the node service.
func (d *Driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return edge.NodeCapabilities(
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	), nil
}
