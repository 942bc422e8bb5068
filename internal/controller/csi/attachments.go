package csi

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// errNotAttached answers what is asked of volumes on nodes.
var errNotAttached = status.Error(codes.Unimplemented, "volumes on nodes are not attached: the CSIDriver has attachRequired false")

// ControllerPublishVolume attaches a volume to a node.
func (d *Driver) ControllerPublishVolume(
	ctx context.Context, req *csi.ControllerPublishVolumeRequest,
) (*csi.ControllerPublishVolumeResponse, error) {
	if d.cfg.Kind == pools.KindLocal {
		return nil, errNotAttached
	}
	if err := edge.RequiredID("volume_id", req.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := edge.RequiredID("node_id", req.GetNodeId()); err != nil {
		return nil, err
	}
	const field = "volume_capability"
	if req.GetVolumeCapability() == nil {
		return nil, volume.Invalid(field, "is missing")
	}
	use, err := useOf(field, req.GetVolumeCapability())
	if err != nil {
		return nil, err
	}
	if err := edge.KnownID("volume_id", req.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := node(req.GetNodeId()); err != nil {
		return nil, err
	}
	v, err := d.cfg.Pools.Volume(ctx, req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := use.fits(field, v); err != nil {
		return nil, err
	}
	a, err := d.cfg.Pools.Attach(ctx, pools.NewAttachment{
		Volume: v.ID, Node: req.GetNodeId(), ReadOnly: req.GetReadonly() || use.readOnly, Shared: use.nodes,
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: a.PublishContext(use.block)}, nil
}

// ControllerUnpublishVolume detaches a volume from a node, or from all where none is named. What does
// not exist is detached.
func (d *Driver) ControllerUnpublishVolume(
	ctx context.Context, req *csi.ControllerUnpublishVolumeRequest,
) (*csi.ControllerUnpublishVolumeResponse, error) {
	if d.cfg.Kind == pools.KindLocal {
		return nil, errNotAttached
	}
	id, from := req.GetVolumeId(), req.GetNodeId()
	if err := edge.RequiredID("volume_id", id); err != nil {
		return nil, err
	}
	if pools.IsID(id) && (from == "" || pools.IsID(from)) {
		if err := d.cfg.Pools.Detach(ctx, id, from); err != nil {
			return nil, err
		}
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}
