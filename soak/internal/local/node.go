package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/testbed"
)

// poolKey is where the volume context has the UUID of a volume's pool.
const poolKey = "pools.katbox.io/pool"

// driverName is the local driver's.
const driverName = "local.csi.katbox.io"

// node is the kubelet's side of local volumes.
type node struct {
	kubelet string
	conn    *grpc.ClientConn
}

func dial(socket, kubelet string) (*node, error) {
	conn, err := testbed.Dial(socket)
	return &node{kubelet: kubelet, conn: conn}, err
}

// staging and target are where a volume is staged, and published for a pod.
func (n *node) staging(volume string) string {
	return filepath.Join(n.kubelet, "plugins/kubernetes.io/csi", driverName, volume, "globalmount")
}

func (n *node) target(volume, pod string) string {
	return filepath.Join(n.kubelet, "pods", pod, "volumes/kubernetes.io~csi", volume, "mount")
}

func (n *node) stageOnce(ctx context.Context, pool, volume string) error {
	path := n.staging(volume)
	if err := os.MkdirAll(path, 0o750); err != nil {
		return err
	}
	_, err := csi.NewNodeClient(n.conn).NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: volume, StagingTargetPath: path, VolumeCapability: testbed.Mount(), VolumeContext: map[string]string{poolKey: pool},
	})
	return err
}

func (n *node) stage(ctx context.Context, pool, volume string) error {
	return n.call(ctx, "stage "+volume, func(ctx context.Context) error { return n.stageOnce(ctx, pool, volume) })
}

// publish gives a staged volume to a pod and returns where.
func (n *node) publish(ctx context.Context, pool, volume, pod string) (string, error) {
	target := n.target(volume, pod)
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return "", err
	}
	return target, n.call(ctx, "publish "+volume, func(ctx context.Context) error {
		_, err := csi.NewNodeClient(n.conn).NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId: volume, StagingTargetPath: n.staging(volume), TargetPath: target, VolumeCapability: testbed.Mount(),
			VolumeContext: map[string]string{poolKey: pool},
		})
		return err
	})
}

// leave takes a volume from a pod and from the node, and removes the kubelet's directories for both.
func (n *node) leave(ctx context.Context, volume, pod string) error {
	target, staging := n.target(volume, pod), n.staging(volume)
	err := n.call(ctx, "unpublish "+volume, func(ctx context.Context) error {
		_, err := csi.NewNodeClient(n.conn).NodeUnpublishVolume(ctx, testbed.Unpublish(volume, target))
		return err
	})
	if err != nil {
		return err
	}
	err = n.call(ctx, "unstage "+volume, func(ctx context.Context) error {
		_, err := csi.NewNodeClient(n.conn).NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: volume, StagingTargetPath: staging})
		return err
	})
	if err != nil {
		return err
	}
	for _, path := range []string{target, filepath.Dir(target), staging, filepath.Dir(staging)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("after %s was taken away: %w", volume, err)
		}
	}
	return nil
}

// expand completes the growth of a volume that a pod has. It returns the size.
func (n *node) expand(ctx context.Context, volume, target string, bytes int64) (size int64, err error) {
	return size, n.call(ctx, "expand "+volume, func(ctx context.Context) error {
		answer, err := csi.NewNodeClient(n.conn).NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
			VolumeId: volume, VolumePath: target, CapacityRange: &csi.CapacityRange{RequiredBytes: bytes},
		})
		size = answer.GetCapacityBytes()
		return err
	})
}

// call makes a call, and repeats it as long as a kubelet would.
func (n *node) call(ctx context.Context, what string, do func(context.Context) error) error {
	return repeat(ctx, what, func(err error) bool {
		return slices.Contains([]codes.Code{codes.Unavailable, codes.Aborted, codes.DeadlineExceeded}, status.Code(err))
	}, do)
}
