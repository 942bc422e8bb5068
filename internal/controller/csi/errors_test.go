package csi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// every is each call that changes something or asks for a volume, with a request that is acceptable.
var every = map[string]func(context.Context, grpc.ClientConnInterface) error{
	"CreateVolume": func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewControllerClient(conn).CreateVolume(ctx, createRequest())
		return err
	},
	"DeleteVolume": func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewControllerClient(conn).DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "v"})
		return err
	},
	"ControllerPublishVolume": func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewControllerClient(conn).ControllerPublishVolume(ctx,
			&csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: "n", VolumeCapability: mountOf(single, "")})
		return err
	},
	"ControllerUnpublishVolume": func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewControllerClient(conn).ControllerUnpublishVolume(ctx,
			&csi.ControllerUnpublishVolumeRequest{VolumeId: "v", NodeId: "n"})
		return err
	},
	"ValidateVolumeCapabilities": func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewControllerClient(conn).ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{
			VolumeId: "v", VolumeCapabilities: []*csi.VolumeCapability{mountOf(single, "")}})
		return err
	},
	"ListVolumes": func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewControllerClient(conn).ListVolumes(ctx, &csi.ListVolumesRequest{})
		return err
	},
	"CreateSnapshot": func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewControllerClient(conn).CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v"})
		return err
	},
	"DeleteSnapshot": func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewControllerClient(conn).DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: "s"})
		return err
	},
	"ListSnapshots": func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewControllerClient(conn).ListSnapshots(ctx, &csi.ListSnapshotsRequest{})
		return err
	},
	"ControllerExpandVolume": func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewControllerClient(conn).ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
			VolumeId: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30}})
		return err
	},
	"ControllerGetVolume": func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := csi.NewControllerClient(conn).ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: "v"})
		return err
	},
}

// createRequest is what a provisioner sends.
func createRequest() *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: "pvc-1", CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30},
		VolumeCapabilities: []*csi.VolumeCapability{mountOf(single, "")},
	}
}

// TestCodeOfEveryErrorInEveryCall: an error that leaves the outcome open, or may do so, has a code after
// which the sidecars ask again.
func TestCodeOfEveryErrorInEveryCall(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want codes.Code
		open bool // what became of the call is not known
	}{
		{nil, codes.OK, false},
		{volume.ErrUncertain, codes.Aborted, true},
		{volume.ErrBusy, codes.Aborted, true},
		{volume.ErrUnavailable, codes.Unavailable, true},
		{context.DeadlineExceeded, codes.DeadlineExceeded, true},
		{context.Canceled, codes.Canceled, true},
		{volume.ErrFailed, codes.Aborted, true},
		{errors.New("something else"), codes.Aborted, true},
		{array.ErrUncertain, codes.Aborted, true},
		{array.ErrTimeout, codes.Aborted, true},
		{array.ErrNoRoom, codes.Aborted, true},
		{volume.Invalid("name", "is odd"), codes.InvalidArgument, false},
		{volume.ErrConflict, codes.AlreadyExists, false},
		{pools.ErrInUse, codes.FailedPrecondition, false},
		{pools.ErrOutOfRange, codes.OutOfRange, false},
		{volume.ErrNoSpace, codes.ResourceExhausted, false},
		{volume.ErrNotFound, codes.NotFound, false},
		{errors.Join(volume.ErrNotFound, volume.ErrUncertain), codes.Aborted, true},
		{errors.Join(volume.ErrNoSpace, volume.ErrUnavailable), codes.Unavailable, true},
		{errors.Join(volume.ErrInvalid, context.DeadlineExceeded), codes.DeadlineExceeded, true},
	} {
		if got := codeOf(tt.err); got != tt.want || tt.open && isFinal(got) {
			t.Errorf("%v: code %s, want %s", tt.err, got, tt.want)
		}
		f := &fakePools{volumes: []pools.Volume{{ID: "v", Protocol: pools.NFS}}}
		if f.err = tt.err; tt.err != nil {
			f.err = fmt.Errorf("doing it: %w", tt.err)
		}
		conn := serve(t, f)
		for name, call := range every {
			err := call(t.Context(), conn)
			if got := status.Code(err); got != tt.want {
				t.Errorf("%s: %v: code %s, want %s", name, tt.err, got, tt.want)
			}
		}
	}
}

// isFinal is what the provisioner takes as "nothing was made": the opposite of "may be in progress" in
// its checkError (kubernetes-csi/external-provisioner pkg/controller/controller.go).
func isFinal(code codes.Code) bool {
	switch code {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted:
		return false
	}
	return true
}

// TestEveryMethodIsTried: the table above has each method that this service implements.
func TestEveryMethodIsTried(t *testing.T) {
	others := map[string]bool{
		"ControllerGetCapabilities": true, "GetCapacity": true, // they have tests of their own
		// They are not implemented.
		"ControllerModifyVolume": true, "GetSnapshot": true, "ControllerGetVolumeHealth": true, "ControllerListVolumeHealth": true,
	}
	for _, m := range csi.Controller_ServiceDesc.Methods {
		if every[m.MethodName] == nil && !others[m.MethodName] {
			t.Errorf("no test makes an error of %s", m.MethodName)
		}
	}
}

func TestNoRoomWithoutAClass(t *testing.T) {
	f := &fakePools{err: volume.ErrNotFound}
	client := csi.NewControllerClient(serve(t, f))
	got, err := client.GetCapacity(t.Context(), &csi.GetCapacityRequest{})
	if err != nil || got.AvailableCapacity != 0 || got.GetMaximumVolumeSize().GetValue() != 0 {
		t.Errorf("%v, %v, want no capacity", got, err)
	}
	f.err = volume.ErrUnavailable
	if _, err := client.GetCapacity(t.Context(), &csi.GetCapacityRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("%v, want Unavailable", err)
	}
}
