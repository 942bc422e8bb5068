package main

import (
	"context"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// callDeadline is how long a kubelet waits for an answer.
const callDeadline = 120 * time.Second

// kubelet makes the calls that a kubelet makes, one at a time, and judges the
// answers. Repeating and spoiling them is the business of [kubelet.carryOut].
type kubelet struct {
	layout   layout
	stats    *stats
	findings *findings
	// down tells whether the daemon was down by our doing between two times.
	down func(from, to time.Time) bool
	// firstWait is the wait after the first failure of an operation.
	firstWait time.Duration
}

// spoil says whether and when the client gives a call up.
type spoil struct {
	cancel bool
	after  time.Duration
}

// dial prepares a connection; the first call on it connects.
func dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// publishOnce does what a kubelet does to mount a volume: it asks twice for the
// capabilities, for two questions, and then publishes.
func (k *kubelet) publishOnce(ctx context.Context, v *volume, s spoil) error {
	mode := csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	for range 2 {
		err := k.call(ctx, v, getCapabilities, spoil{}, func(ctx context.Context, node csi.NodeClient) error {
			answer, err := node.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
			for _, c := range answer.GetCapabilities() {
				if c.GetRpc().GetType() == csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER {
					mode = csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return k.call(ctx, v, publish, s, func(ctx context.Context, node csi.NodeClient) error {
		_, err := node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId:   v.plan.id,
			TargetPath: v.target,
			VolumeCapability: &csi.VolumeCapability{
				AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
			},
			Readonly:      v.plan.readOnly,
			VolumeContext: v.context(),
		})
		return err
	})
}

// unpublishOnce does what a kubelet does to unmount a volume.
func (k *kubelet) unpublishOnce(ctx context.Context, v *volume, s spoil) error {
	return k.call(ctx, v, unpublish, s, func(ctx context.Context, node csi.NodeClient) error {
		_, err := node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{
			VolumeId:   v.plan.id,
			TargetPath: v.target,
		})
		return err
	})
}

// call makes one call on a connection of its own, counts it and judges its
// answer.
func (k *kubelet) call(
	ctx context.Context, v *volume, m method, s spoil,
	do func(context.Context, csi.NodeClient) error,
) error {
	conn, err := dial(k.layout.socket)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", k.layout.socket, err)
	}
	defer conn.Close()

	inner, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	if s.cancel {
		timer := time.AfterFunc(s.after, cancel)
		defer timer.Stop()
	}
	began := v.calls.begin(m)
	err = do(inner, csi.NewNodeClient(conn))
	e := v.calls.end(began, err)
	if ctx.Err() != nil {
		// The run is over, which says nothing about the daemon.
		return err
	}
	k.stats.add(e, s.cancel)
	why := objection(answer{
		method:    m,
		code:      status.Code(err),
		cancelled: s.cancel,
		outage:    k.down(e.from, e.to),
		contended: e.contended,
	})
	if why != "" {
		k.findings.add(refusedCall, v, fmt.Sprintf("%s was answered with %s: %s: %s",
			m, status.Code(err), status.Convert(err).Message(), why))
	}
	return err
}
