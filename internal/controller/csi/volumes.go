package csi

import (
	"context"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// CreateVolume makes a volume, empty or with the data of a snapshot or another volume.
func (d *Driver) CreateVolume(ctx context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	wanted, err := d.newVolume(req)
	if err != nil {
		return nil, err
	}
	made, err := d.cfg.Pools.CreateVolume(ctx, wanted)
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: csiVolume(made)}, nil
}

// newVolume validates a request for a volume.
func (d *Driver) newVolume(req *csi.CreateVolumeRequest) (v pools.NewVolume, err error) {
	v.Kind = d.cfg.Kind
	v.Name = req.GetName()
	if err := checkName(v.Name); err != nil {
		return v, err
	}
	use, err := usesOf(capabilitiesField, req.GetVolumeCapabilities()...)
	if err != nil {
		return v, err
	}
	if err := parametersOf(v.Kind, &v, req.GetParameters()); err != nil {
		return v, err
	}
	if len(req.GetMutableParameters()) > 0 {
		return v, volume.Invalid("mutable_parameters", "are not supported: a VolumeAttributesClass changes nothing here")
	}
	if v.Required, v.Limit, err = sizes(req.GetCapacityRange()); err != nil {
		return v, err
	}
	if use.fsType == "" {
		use.fsType = v.FSType
	}
	v.Block, v.Shared = use.block, use.writers
	if v.Protocol, v.FSType, err = d.reached(v.Protocol, use); err != nil {
		return v, err
	}
	if v.Source, err = sourceOf(req.GetVolumeContentSource()); err != nil || v.Kind != pools.KindLocal {
		return v, err
	}
	v.Near, err = near(req.GetAccessibilityRequirements())
	return v, err
}

// maxSize is the most bytes that can be asked for: an EiB. Sizes near the largest number of bytes cannot be
// rounded up.
const maxSize = 1 << 60

// sizes reads the bounds of a size in bytes; 0 is none.
func sizes(r *csi.CapacityRange) (required, limit int64, err error) {
	required, limit = r.GetRequiredBytes(), r.GetLimitBytes()
	switch {
	case required < 0 || limit < 0:
		return 0, 0, volume.Invalid("capacity_range", "is negative")
	case required > maxSize:
		return 0, 0, fmt.Errorf("capacity_range: the required %d bytes are more than any pool has: %w", required, pools.ErrOutOfRange)
	case limit > 0 && limit < required:
		return 0, 0, fmt.Errorf("capacity_range: the limit of %d bytes is less than the required %d: %w", limit, required, pools.ErrOutOfRange)
	}
	return required, limit, nil
}

// sourceOf reads what a new volume's data comes from.
func sourceOf(s *csi.VolumeContentSource) (from pools.Source, err error) {
	const field = "volume_content_source"
	switch {
	case s == nil:
		return from, nil
	case s.GetSnapshot() != nil:
		from.Snapshot = s.GetSnapshot().GetSnapshotId()
		return from, edge.KnownID(field+".snapshot.snapshot_id", from.Snapshot)
	case s.GetVolume() != nil:
		from.Volume = s.GetVolume().GetVolumeId()
		return from, edge.KnownID(field+".volume.volume_id", from.Volume)
	}
	return from, volume.Invalid(field, "is neither a snapshot nor a volume")
}

func csiVolume(v pools.Volume) *csi.Volume {
	answer := &csi.Volume{VolumeId: v.ID, CapacityBytes: v.Size}
	if v.On != "" {
		answer.AccessibleTopology = []*csi.Topology{{Segments: map[string]string{pools.TopologyKey(v.On): pools.TopologyValue}}}
		answer.VolumeContext = map[string]string{pools.PoolContext: v.On}
	}
	switch {
	case v.Source.Snapshot != "":
		answer.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: v.Source.Snapshot}}}
	case v.Source.Volume != "":
		answer.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: v.Source.Volume}}}
	}
	return answer
}

// DeleteVolume deletes a volume. One that does not exist is deleted.
func (d *Driver) DeleteVolume(ctx context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	id := req.GetVolumeId()
	if err := edge.RequiredID("volume_id", id); err != nil {
		return nil, err
	}
	if pools.IsID(id) {
		if err := d.cfg.Pools.DeleteVolume(ctx, id); err != nil {
			return nil, err
		}
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ControllerExpandVolume makes a volume larger. The node has to look again at a device; to an NFS mount
// the new size shows by itself, and a node makes its own volumes larger wherever they are mounted.
func (d *Driver) ControllerExpandVolume(
	ctx context.Context, req *csi.ControllerExpandVolumeRequest,
) (*csi.ControllerExpandVolumeResponse, error) {
	id := req.GetVolumeId()
	if err := edge.KnownID("volume_id", id); err != nil {
		return nil, err
	}
	if req.GetCapacityRange() == nil {
		return nil, volume.Invalid("capacity_range", "is missing")
	}
	least, most, err := sizes(req.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	if req.GetVolumeCapability() != nil {
		if _, err := useOf("volume_capability", req.GetVolumeCapability()); err != nil {
			return nil, err
		}
	}
	v, err := d.cfg.Pools.GrowVolume(ctx, id, least, most)
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: v.Size, NodeExpansionRequired: v.Protocol == pools.ISCSI}, nil
}

// ValidateVolumeCapabilities confirms what a volume can be used for.
func (d *Driver) ValidateVolumeCapabilities(
	ctx context.Context, req *csi.ValidateVolumeCapabilitiesRequest,
) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	id := req.GetVolumeId()
	if err := edge.RequiredID("volume_id", id); err != nil {
		return nil, err
	}
	if len(req.GetVolumeCapabilities()) == 0 {
		return nil, volume.Invalid(capabilitiesField, "is missing")
	}
	if err := edge.KnownID("volume_id", id); err != nil {
		return nil, err
	}
	v, err := d.cfg.Pools.Volume(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := d.validate(req, v); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: req.GetVolumeContext(), VolumeCapabilities: req.GetVolumeCapabilities(), Parameters: req.GetParameters(),
	}}, nil
}

// validate returns why a volume is not as a request says.
func (d *Driver) validate(req *csi.ValidateVolumeCapabilitiesRequest, v pools.Volume) error {
	use, err := usesOf(capabilitiesField, req.GetVolumeCapabilities()...)
	if err != nil {
		return err
	}
	var of pools.NewVolume
	if err := parametersOf(d.cfg.Kind, &of, req.GetParameters()); err != nil {
		return err
	}
	if of.Class != "" && of.Class != v.Class {
		return volume.Invalid(parameter(keyClass), fmt.Sprintf("is %s, and volume %s is of class %s", of.Class, v.ID, v.Class))
	}
	if of.Protocol != "" && of.Protocol != v.Protocol {
		return volume.Invalid(parameter(keyProtocol), fmt.Sprintf("is %s, and volume %s is reached over %s", of.Protocol, v.ID, v.Protocol))
	}
	return use.fits(capabilitiesField, v)
}

// GetCapacity returns what a class has room for: nothing, where there is no such class.
func (d *Driver) GetCapacity(ctx context.Context, req *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	var of pools.NewVolume
	if err := parametersOf(d.cfg.Kind, &of, req.GetParameters()); err != nil {
		return nil, err
	}
	want := pools.Wanted{Class: of.Class, Kind: d.cfg.Kind}
	if len(req.GetVolumeCapabilities()) > 0 {
		use, err := usesOf(capabilitiesField, req.GetVolumeCapabilities()...)
		if err == nil {
			_, _, err = d.reached(of.Protocol, use)
		}
		if err != nil {
			return &csi.GetCapacityResponse{}, nil // there is no room for what cannot be made
		}
		want.Block = use.block
	}
	if at := req.GetAccessibleTopology(); at != nil && d.cfg.Kind == pools.KindLocal {
		here := segment(at)
		if len(here) == 0 {
			return &csi.GetCapacityResponse{}, nil // nor where there is no pool
		}
		want.Near = [][]string{here}
	}
	room, err := d.cfg.Pools.Capacity(ctx, want)
	if err != nil && !errors.Is(err, volume.ErrNotFound) {
		return nil, err
	}
	return &csi.GetCapacityResponse{
		AvailableCapacity: room.Available,
		MaximumVolumeSize: wrapperspb.Int64(room.Largest),
		MinimumVolumeSize: wrapperspb.Int64(d.cfg.Kind.Unit()),
	}, nil
}
