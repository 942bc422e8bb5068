package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/testbed"
)

// callLimit is the deadline of each call.
const callLimit = 30 * time.Second

// provisioner plays the external-provisioner, -resizer and -snapshotter, and the part of the kubelet that
// expands: each call is repeated until there is an answer that is final.
type provisioner struct {
	controller csi.ControllerClient
	node       csi.NodeClient
	conns      []*grpc.ClientConn
}

func newProvisioner(p *programs) (*provisioner, error) {
	dial := func(socket string) (*grpc.ClientConn, error) {
		return testbed.Dial(socket)
	}
	controller, err := dial(p.controllerSocket)
	node, nodeErr := dial(p.nodeSocket)
	if err := errors.Join(err, nodeErr); err != nil {
		return nil, err
	}
	return &provisioner{csi.NewControllerClient(controller), csi.NewNodeClient(node), []*grpc.ClientConn{controller, node}}, nil
}

func (p *provisioner) close() {
	for _, conn := range p.conns {
		_ = conn.Close()
	}
}

// repeat calls until there is an answer that is final.
func repeat[T any](ctx context.Context, call func(context.Context) (T, error)) (answer T, err error) {
	waits := retry.Backoff{First: 250 * time.Millisecond, Longest: 4 * time.Second}
	for began, failures := time.Now(), 1; time.Since(began) < patience; failures++ {
		one, cancel := context.WithTimeout(ctx, callLimit)
		answer, err = call(one)
		cancel()
		if err == nil || ctx.Err() != nil || history.Final(status.Code(err)) {
			return answer, err
		}
		_ = retry.Pause(ctx, waits.After(failures))
	}
	return answer, fmt.Errorf("for %s: %w", patience, err)
}

// create makes a volume, and returns the size that it has by the answer.
func (p *provisioner) create(ctx context.Context, v *volume, snapshot string) (size int64, err error) {
	r := &csi.CreateVolumeRequest{
		Name: v.name, CapacityRange: &csi.CapacityRange{RequiredBytes: v.size},
		VolumeCapabilities: []*csi.VolumeCapability{v.capability()}, Parameters: map[string]string{"protocol": "iscsi"},
	}
	if v.kind == nfs {
		r.Parameters["protocol"] = "nfs"
	}
	if snapshot != "" {
		r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: snapshot}}}
	}
	answer, err := repeat(ctx, func(ctx context.Context) (*csi.CreateVolumeResponse, error) { return p.controller.CreateVolume(ctx, r) })
	v.id = answer.GetVolume().GetVolumeId()
	return answer.GetVolume().GetCapacityBytes(), err
}

func (p *provisioner) delete(ctx context.Context, id string) error {
	_, err := repeat(ctx, func(ctx context.Context) (*csi.DeleteVolumeResponse, error) {
		return p.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	})
	return err
}

// expand makes a volume larger that is published, and returns the size that it has by the answers.
func (p *provisioner) expand(ctx context.Context, v *volume, target, staging string, size int64) (int64, error) {
	to := &csi.CapacityRange{RequiredBytes: size}
	answer, err := repeat(ctx, func(ctx context.Context) (*csi.ControllerExpandVolumeResponse, error) {
		return p.controller.ControllerExpandVolume(ctx,
			&csi.ControllerExpandVolumeRequest{VolumeId: v.id, CapacityRange: to, VolumeCapability: v.capability()})
	})
	if err != nil || !answer.GetNodeExpansionRequired() {
		return answer.GetCapacityBytes(), err
	}
	onNode, err := repeat(ctx, func(ctx context.Context) (*csi.NodeExpandVolumeResponse, error) {
		return p.node.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
			VolumeId: v.id, VolumePath: target, StagingTargetPath: staging, CapacityRange: to, VolumeCapability: v.capability(),
		})
	})
	if has := onNode.GetCapacityBytes(); err == nil && has != 0 && has < size { // 0 says nothing
		err = fmt.Errorf("it was expanded to %d bytes, and its node says that it has %d", size, has)
	}
	return answer.GetCapacityBytes(), err
}

func (p *provisioner) snapshot(ctx context.Context, v *volume, name string) (id string, err error) {
	answer, err := repeat(ctx, func(ctx context.Context) (*csi.CreateSnapshotResponse, error) {
		answer, err := p.controller.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: v.id})
		if err == nil && !answer.GetSnapshot().GetReadyToUse() {
			err = status.Error(codes.Unavailable, "the snapshot is not ready yet")
		}
		return answer, err
	})
	return answer.GetSnapshot().GetSnapshotId(), err
}

func (p *provisioner) deleteSnapshot(ctx context.Context, id string) error {
	_, err := repeat(ctx, func(ctx context.Context) (*csi.DeleteSnapshotResponse, error) {
		return p.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id})
	})
	return err
}

// attachElsewhere attaches a volume to the other node, as for a pod there, and detaches it again. It
// returns the answer to the first.
func (p *provisioner) attachElsewhere(ctx context.Context, v *volume) (attached error, detached error) {
	_, attached = repeat(ctx, func(ctx context.Context) (*csi.ControllerPublishVolumeResponse, error) {
		return p.controller.ControllerPublishVolume(ctx,
			&csi.ControllerPublishVolumeRequest{VolumeId: v.id, NodeId: otherNode, VolumeCapability: v.capability()})
	})
	_, detached = repeat(ctx, func(ctx context.Context) (*csi.ControllerUnpublishVolumeResponse, error) {
		return p.controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: v.id, NodeId: otherNode})
	})
	return attached, detached
}
