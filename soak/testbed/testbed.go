// Package testbed is what everything needs that runs the daemon as a process and plays the kubelet for it: the
// layout of a node's directories and the daemon's flags for it ([Layout]), the process from its start to its end
// ([Process]), connections to it ([Dial]), and the kubelet's side of one volume ([Volume], or [Staged] for a
// persistent one): its paths, its directories, its calls. The soak, the benchmarks, the power cuts and the tests of
// cmd/katbox share it. It is outside of soak/internal for the latter.
//
// It does not decide when something is done, and does not judge what came of it. A disk is made by
// soak/internal/host; a whole kubelet is soak/internal/kubelet.
package testbed

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// PodUID is the key of the pod in a volume's context.
const PodUID = "csi.storage.k8s.io/pod.uid"

// Eager lets a connection try every 5 ms, as before there is a socket; by itself the library would wait a second after
// the first attempt.
func Eager() grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Minute,
		Backoff: backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond}})
}

// Waiting lets calls wait until there is a connection.
func Waiting() grpc.DialOption { return grpc.WithDefaultCallOptions(grpc.WaitForReady(true)) }

// Dial prepares a connection to a driver; the first call on it connects.
func Dial(socket string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("unix://"+socket, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", socket, err)
	}
	return conn, nil
}

// Mount is the capability of a file system that one node writes to, as pods have it.
func Mount() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// Publish asks for an inline volume of a pod. More may be added to its context.
func Publish(id, target, pod string, more map[string]string) *csi.NodePublishVolumeRequest {
	r := &csi.NodePublishVolumeRequest{
		VolumeId: id, TargetPath: target, VolumeCapability: Mount(),
		VolumeContext: map[string]string{"csi.storage.k8s.io/ephemeral": "true", PodUID: pod},
	}
	maps.Copy(r.VolumeContext, more)
	return r
}

// Unpublish takes a volume away.
func Unpublish(id, target string) *csi.NodeUnpublishVolumeRequest {
	return &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target}
}

// Volume is an inline volume: where it is, and what it is called.
type Volume struct {
	// Kubelet is the kubelet's directory, Work the driver's.
	Kubelet, Work string
	// Pod is the UID of its pod, Name its name there.
	Pod, Name, ID string
}

// Data is the data directory.
func (v Volume) Data() string { return filepath.Join(v.Work, v.Pod, v.ID) }

// Target is where the pod wants it.
func (v Volume) Target() string { return filepath.Join(v.TargetDir(), "mount") }

// TargetDir is what the kubelet makes for a volume; the driver makes the target in it.
func (v Volume) TargetDir() string {
	return filepath.Join(v.pods(), v.Pod, "volumes", "kubernetes.io~csi", v.Name)
}

func (v Volume) pods() string { return filepath.Join(v.Kubelet, "pods") }

// MakeTargetDir makes the directories of the pod, as the kubelet does before a
// publish. It does not sync them, as the kubelet does not.
func (v Volume) MakeTargetDir() error {
	for {
		err := os.MkdirAll(v.TargetDir(), 0o750)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrNotExist): // not the pod's other volume, going
			return fmt.Errorf("make the directory of a target: %w", err)
		}
	}
}

// RemoveTargetDir removes what is empty of the pod's directories, with the target
// if it is still there.
func (v Volume) RemoveTargetDir() error {
	for dir := v.Target(); dir != v.pods(); dir = filepath.Dir(dir) {
		err := os.Remove(dir)
		switch {
		case err == nil, errors.Is(err, os.ErrNotExist):
		case errors.Is(err, os.ErrExist): // not empty: the pod has another volume
			return nil
		default:
			return fmt.Errorf("remove the directory of a target: %w", err)
		}
	}
	return nil
}
