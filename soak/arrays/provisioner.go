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

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/testbed"
)

const (
	// callLimit is the deadline of each call.
	callLimit = 30 * time.Second
	// callAgain is the pause before a call is repeated.
	callAgain = 500 * time.Millisecond
)

// provisioner plays the external-provisioner, -resizer and -snapshotter, and the part of the kubelet that
// expands: each call is repeated until there is an answer that is final.
type provisioner struct {
	controller csi.ControllerClient
	node       csi.NodeClient
	conns      []*grpc.ClientConn
}

func newProvisioner(p *programs) (*provisioner, error) {
	controller, err := testbed.Dial(p.controllerSocket)
	node, nodeErr := testbed.Dial(p.nodeSocket)
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

// call makes a call until there is an answer that is final.
func call[Q, A any](ctx context.Context, method func(context.Context, Q, ...grpc.CallOption) (A, error), q Q) (answer A, err error) {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = pause.Until(patient, callAgain, func() (bool, error) {
		one, end := context.WithTimeout(patient, callLimit)
		defer end()
		var err error
		answer, err = method(one, q)
		return err == nil || history.Final(status.Code(err)), err
	})
	if err != nil && !history.Final(status.Code(err)) {
		err = fmt.Errorf("for %s: %w", patience, err)
	}
	return answer, err
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
	answer, err := call(ctx, p.controller.CreateVolume, r)
	v.id = answer.GetVolume().GetVolumeId()
	return answer.GetVolume().GetCapacityBytes(), err
}

func (p *provisioner) delete(ctx context.Context, id string) error {
	_, err := call(ctx, p.controller.DeleteVolume, &csi.DeleteVolumeRequest{VolumeId: id})
	return err
}

// expand makes a volume larger that is published, and returns the size that it has by the answers.
func (p *provisioner) expand(ctx context.Context, v *volume, target, staging string, size int64) (int64, error) {
	to := &csi.CapacityRange{RequiredBytes: size}
	answer, err := call(ctx, p.controller.ControllerExpandVolume,
		&csi.ControllerExpandVolumeRequest{VolumeId: v.id, CapacityRange: to, VolumeCapability: v.capability()})
	if err != nil || !answer.GetNodeExpansionRequired() {
		return answer.GetCapacityBytes(), err
	}
	onNode, err := call(ctx, p.node.NodeExpandVolume, &csi.NodeExpandVolumeRequest{
		VolumeId: v.id, VolumePath: target, StagingTargetPath: staging, CapacityRange: to, VolumeCapability: v.capability(),
	})
	if has := onNode.GetCapacityBytes(); err == nil && has != 0 && has < size { // 0 says nothing
		err = fmt.Errorf("it was expanded to %d bytes, and its node says that it has %d", size, has)
	}
	return answer.GetCapacityBytes(), err
}

func (p *provisioner) snapshot(ctx context.Context, v *volume, name string) (id string, err error) {
	whole := func(ctx context.Context, q *csi.CreateSnapshotRequest, _ ...grpc.CallOption) (*csi.CreateSnapshotResponse, error) {
		answer, err := p.controller.CreateSnapshot(ctx, q)
		if err == nil && !answer.GetSnapshot().GetReadyToUse() {
			err = status.Error(codes.Unavailable, "the snapshot is not ready yet")
		}
		return answer, err
	}
	answer, err := call(ctx, whole, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: v.id})
	return answer.GetSnapshot().GetSnapshotId(), err
}

func (p *provisioner) deleteSnapshot(ctx context.Context, id string) error {
	_, err := call(ctx, p.controller.DeleteSnapshot, &csi.DeleteSnapshotRequest{SnapshotId: id})
	return err
}

// attachElsewhere attaches a volume to the other node, as for a pod there, and detaches it again. It
// returns the answer to the first.
func (p *provisioner) attachElsewhere(ctx context.Context, v *volume) (attached error, detached error) {
	_, attached = call(ctx, p.controller.ControllerPublishVolume,
		&csi.ControllerPublishVolumeRequest{VolumeId: v.id, NodeId: otherNode, VolumeCapability: v.capability()})
	_, detached = call(ctx, p.controller.ControllerUnpublishVolume,
		&csi.ControllerUnpublishVolumeRequest{VolumeId: v.id, NodeId: otherNode})
	return attached, detached
}
