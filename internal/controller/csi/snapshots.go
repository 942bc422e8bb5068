package csi

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/pools"
)

// CreateSnapshot takes a snapshot of a volume.
func (d *Driver) CreateSnapshot(ctx context.Context, req *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if err := checkName(req.GetName()); err != nil {
		return nil, err
	}
	if err := edge.RequiredID("source_volume_id", req.GetSourceVolumeId()); err != nil {
		return nil, err
	}
	if err := checkKeys(req.GetParameters(), snapshotKeys); err != nil {
		return nil, err
	}
	if err := edge.KnownID("source_volume_id", req.GetSourceVolumeId()); err != nil {
		return nil, err
	}
	s, err := d.cfg.Pools.CreateSnapshot(ctx, req.GetName(), req.GetSourceVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: csiSnapshot(s)}, nil
}

func csiSnapshot(s pools.Snapshot) *csi.Snapshot {
	answer := &csi.Snapshot{SnapshotId: s.ID, SourceVolumeId: s.Volume, SizeBytes: s.Size, ReadyToUse: s.Ready}
	if !s.Created.IsZero() {
		answer.CreationTime = timestamppb.New(s.Created)
	}
	return answer
}

// DeleteSnapshot deletes a snapshot. One that does not exist is deleted.
func (d *Driver) DeleteSnapshot(ctx context.Context, req *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	id := req.GetSnapshotId()
	if err := edge.RequiredID("snapshot_id", id); err != nil {
		return nil, err
	}
	if pools.IsID(id) {
		if err := d.cfg.Pools.DeleteSnapshot(ctx, id); err != nil {
			return nil, err
		}
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

// ListSnapshots lists all snapshots, one, or those of a volume.
func (d *Driver) ListSnapshots(ctx context.Context, req *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	page, err := pageOf(snapshotToken, req.GetStartingToken(), req.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	selection := pools.SnapshotSelection{ID: req.GetSnapshotId(), Volume: req.GetSourceVolumeId()}
	for _, id := range []string{selection.ID, selection.Volume} {
		if id != "" && !pools.IsID(id) {
			return &csi.ListSnapshotsResponse{}, nil
		}
	}
	found, more, err := d.cfg.Pools.Snapshots(ctx, selection, page)
	if err != nil {
		return nil, err
	}
	var resp csi.ListSnapshotsResponse
	for _, s := range found {
		resp.Entries = append(resp.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: csiSnapshot(s)})
	}
	if more && len(found) > 0 {
		resp.NextToken = snapshotToken + found[len(found)-1].ID
	}
	return &resp, nil
}
