package persistent

import (
	"cmp"
	"context"
	"errors"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/volume"
)

// NodeStageVolume makes an attached volume ready for the pods of this node.
func (d *Driver) NodeStageVolume(ctx context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	s, err := d.staging(req)
	if err != nil {
		return nil, err
	}
	if err := d.cfg.Volumes.Stage(ctx, s); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume undoes that. After its success the volume may be detached, or deleted.
func (d *Driver) NodeUnstageVolume(ctx context.Context, req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	id, path, err := d.unstaging(req)
	if err != nil {
		return nil, err
	}
	if err := d.cfg.Volumes.Unstage(ctx, id, path); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume gives a staged volume to a pod.
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

// NodeUnpublishVolume takes the volume away from the pod and removes the target path.
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

// NodeExpandVolume makes the volume as large on this node as it is on its array.
func (d *Driver) NodeExpandVolume(ctx context.Context, req *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	e, err := d.expansion(req)
	if err != nil {
		return nil, err
	}
	bytes, err := d.cfg.Volumes.Expand(ctx, e)
	if err != nil {
		return nil, err
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: bytes}, nil
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

// NodeGetVolumeHealth says what is wrong with a volume. One that gives no answer in time is not accessible; while the
// driver itself is not ready, nothing is known.
func (d *Driver) NodeGetVolumeHealth(ctx context.Context, req *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	id, path, err := healthOf(req)
	if err != nil || path == "" { // without a path there is nothing to look at
		return edge.Health(id, volume.Stats{}), err
	}
	stats, err := d.cfg.Volumes.Stats(ctx, id, path)
	if errors.Is(err, volume.ErrUnavailable) && d.cfg.Volumes.Ready(ctx) == nil {
		stats, err = volume.Stats{Abnormal: true, Condition: err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	return edge.Health(id, stats), nil
}

// anyNumber is the limit of a node that has none. A scheduler of Kubernetes 1.37 takes up a pod that waited for the driver
// when the driver's limit grows, and a driver without a limit has none that grows: the pod would wait for minutes more.
const anyNumber = 100_000

// NodeGetInfo returns the node's ID, which is its name, and its limit of volumes. All nodes reach the
// arrays, so there is no topology for those. The kubelet asks for it once, when it registers the driver.
func (d *Driver) NodeGetInfo(ctx context.Context, _ *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	info := &csi.NodeGetInfoResponse{NodeId: d.cfg.NodeID, MaxVolumesPerNode: cmp.Or(d.cfg.MaxVolumes, anyNumber)}
	if d.cfg.Segments == nil {
		return info, nil
	}
	segments, err := d.cfg.Segments(ctx)
	if err != nil {
		return nil, err
	}
	if len(segments) > 0 {
		info.AccessibleTopology = &csi.Topology{Segments: segments}
	}
	return info, nil
}

// NodeGetCapabilities returns the capabilities of the node service.
func (d *Driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return edge.NodeCapabilities(
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	), nil
}
