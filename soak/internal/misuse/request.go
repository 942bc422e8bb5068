package misuse

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"github.com/katbox/katbox/soak/internal/history"
)

// getVolumeStats is a method that only bad calls use.
const getVolumeStats history.Method = "NodeGetVolumeStats"

// Keys of the volume context that the kubelet sets.
const (
	keyEphemeral = "csi.storage.k8s.io/ephemeral"
	keyPodUID    = "csi.storage.k8s.io/pod.uid"
)

// request has the fields of every method's request.
type request struct {
	id         string
	path       string // the target path, or the volume path of NodeGetVolumeStats
	capability *csi.VolumeCapability
	context    map[string]string
}

// good is a request with nothing wrong.
func (s *Site) good() *request {
	return &request{
		id:   volumeID,
		path: s.target,
		capability: &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		},
		context: map[string]string{
			keyEphemeral:                             "true",
			keyPodUID:                                podUID,
			"csi.storage.k8s.io/pod.name":            "misuse",
			"csi.storage.k8s.io/pod.namespace":       "soak",
			"csi.storage.k8s.io/serviceAccount.name": "default",
		},
	}
}

// send sends the request to a method.
func (r *request) send(ctx context.Context, conn grpc.ClientConnInterface, m history.Method) error {
	node := csi.NewNodeClient(conn)
	var err error
	switch m {
	case history.Publish:
		_, err = node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId: r.id, TargetPath: r.path, VolumeCapability: r.capability, VolumeContext: r.context,
		})
	case history.Unpublish:
		_, err = node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: r.id, TargetPath: r.path})
	default:
		_, err = node.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: r.id, VolumePath: r.path})
	}
	return err
}
