package csi

import (
	"context"
	"fmt"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// A token is the last ID of the page before, with one of these in front.
	volumeToken   = "volumes-after:"
	snapshotToken = "snapshots-after:"
	// maxPage bounds one answer: gRPC's clients take 4 MiB, and a volume with some nodes is 300 bytes.
	maxPage = 5000
)

// pageOf reads which part of a list is wanted.
func pageOf(kind, token string, most int32) (p pools.Page, err error) {
	if most < 0 {
		return p, volume.Invalid("max_entries", "is negative")
	}
	if token != "" {
		id, ours := strings.CutPrefix(token, kind)
		if !ours || !pools.IsID(id) {
			// The specification's code for this: the caller begins anew.
			return p, status.Error(codes.Aborted, fmt.Sprintf("starting_token %.300q is not of a list of these: begin without one", token))
		}
		p.After = id
	}
	p.Limit = maxPage
	if most > 0 {
		p.Limit = min(int(most), maxPage)
	}
	return p, nil
}

// ListVolumes lists all volumes, with the nodes that they are attached to.
func (d *Driver) ListVolumes(ctx context.Context, req *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	page, err := pageOf(volumeToken, req.GetStartingToken(), req.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	found, more, err := d.cfg.Pools.Volumes(ctx, page)
	if err != nil {
		return nil, err
	}
	var resp csi.ListVolumesResponse
	for _, v := range found {
		resp.Entries = append(resp.Entries, &csi.ListVolumesResponse_Entry{
			Volume: csiVolume(v),
			Status: &csi.ListVolumesResponse_VolumeStatus{PublishedNodeIds: v.Nodes},
		})
	}
	if more && len(found) > 0 {
		resp.NextToken = volumeToken + found[len(found)-1].ID
	}
	return &resp, nil
}

// ControllerGetVolume returns one volume.
func (d *Driver) ControllerGetVolume(
	ctx context.Context, req *csi.ControllerGetVolumeRequest,
) (*csi.ControllerGetVolumeResponse, error) {
	if err := edge.KnownID("volume_id", req.GetVolumeId()); err != nil {
		return nil, err
	}
	v, err := d.cfg.Pools.Volume(ctx, req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeResponse{
		Volume: csiVolume(v),
		Status: &csi.ControllerGetVolumeResponse_VolumeStatus{PublishedNodeIds: v.Nodes},
	}, nil
}
