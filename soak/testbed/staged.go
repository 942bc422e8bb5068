package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Staged is a persistent volume that a pod has: where the kubelet wants it, and what it sends.
type Staged struct {
	// Node are the calls of the driver.
	Node csi.NodeClient
	// Kubelet is the kubelet's directory, Driver the name of the driver.
	Kubelet, Driver string
	// Pod is the UID of the pod.
	Pod, ID string
	// Block: the pod has the device, and no file system.
	Block bool
	// Attached is what the controller has answered when it attached the volume, Context the volume's own.
	Attached, Context map[string]string
}

// plugins is the kubelet's directory of plugins for CSI.
func (s Staged) plugins() string { return filepath.Join(s.Kubelet, "plugins/kubernetes.io/csi") }

// Staging is where the volume is staged. It looks at nothing: what looks at a volume of an array that is away waits
// for the array.
func (s Staged) Staging() string {
	if s.Block {
		return filepath.Join(s.plugins(), "volumeDevices/staging", s.ID)
	}
	return filepath.Join(s.plugins(), s.Driver, s.ID, "globalmount")
}

// Target is where the pod has it.
func (s Staged) Target() string {
	if s.Block {
		return filepath.Join(s.plugins(), "volumeDevices/publish", s.ID, s.Pod)
	}
	return Volume{Kubelet: s.Kubelet, Pod: s.Pod, Name: s.ID}.Target()
}

// MakeDirs makes the directories that the kubelet makes before it stages and publishes.
func (s Staged) MakeDirs() error {
	err := errors.Join(os.MkdirAll(s.Staging(), 0o750), os.MkdirAll(filepath.Dir(s.Target()), 0o750))
	if err != nil {
		return fmt.Errorf("make the directories of a staged volume: %w", err)
	}
	return nil
}

// capability is what the kubelet sends for a ReadWriteOnce volume.
func (s Staged) capability() *csi.VolumeCapability {
	c := Mount()
	c.AccessMode.Mode = csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	if s.Block {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	}
	return c
}

// Stage is the kubelet's call, with the directories that it makes.
func (s Staged) Stage(ctx context.Context) error {
	if err := s.MakeDirs(); err != nil {
		return err
	}
	_, err := s.Node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: s.ID, PublishContext: s.Attached, StagingTargetPath: s.Staging(), VolumeCapability: s.capability(), VolumeContext: s.Context,
	})
	return err
}

// Publish is the kubelet's call, with the directories that it makes.
func (s Staged) Publish(ctx context.Context) error {
	if err := s.MakeDirs(); err != nil {
		return err
	}
	_, err := s.Node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: s.ID, PublishContext: s.Attached, StagingTargetPath: s.Staging(), TargetPath: s.Target(),
		VolumeCapability: s.capability(), VolumeContext: s.Context,
	})
	return err
}

// Unpublish is the kubelet's call.
func (s Staged) Unpublish(ctx context.Context) error {
	_, err := s.Node.NodeUnpublishVolume(ctx, Unpublish(s.ID, s.Target()))
	return err
}

// Unstage is the kubelet's call.
func (s Staged) Unstage(ctx context.Context) error {
	_, err := s.Node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: s.ID, StagingTargetPath: s.Staging()})
	return err
}

// Expand completes the growth of a volume that the pod has, and returns its size.
func (s Staged) Expand(ctx context.Context, bytes int64) (int64, error) {
	answer, err := s.Node.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
		VolumeId: s.ID, VolumePath: s.Target(), StagingTargetPath: s.Staging(), VolumeCapability: s.capability(),
		CapacityRange: &csi.CapacityRange{RequiredBytes: bytes},
	})
	return answer.GetCapacityBytes(), err
}
