package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// podUIDKey is the key of the pod in a volume's context.
const podUIDKey = "csi.storage.k8s.io/pod.uid"

// What pods have in common: the namespace of nearly all, the name of their volume, and their service
// account.
const (
	namespace  = "bench"
	volumeName = "scratch"
	account    = "default"
)

// names are what a volume and its pod are called, as the kubelet calls them.
type names struct{ pod, podName, id string }

// named makes the names of a volume, the same for the same numbers.
func named(group string, number int) names {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", group, number))
	return names{
		pod:     fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]),
		podName: fmt.Sprintf("batch-%d-%x", number, sum[:3]),
		id:      fmt.Sprintf("csi-%x", sum),
	}
}

// manyNamed makes the names of count volumes.
func manyNamed(group string, count int) []names {
	list := make([]names, count)
	for i := range list {
		list[i] = named(group, i)
	}
	return list
}

// targetDir is what the kubelet makes for a volume; the driver makes the target
// in it.
func targetDir(pods string, n names) string {
	return filepath.Join(pods, n.pod, "volumes", "kubernetes.io~csi", volumeName)
}

func target(pods string, n names) string { return filepath.Join(targetDir(pods, n), "mount") }

func makePods(pods string, list []names) error {
	for _, n := range list {
		if err := os.MkdirAll(targetDir(pods, n), 0o750); err != nil {
			return fmt.Errorf("make the directory of a pod: %w", err)
		}
	}
	return nil
}

// removePods removes what makePods made, and nothing that is in there.
func removePods(pods string, list []names) error {
	for _, n := range list {
		for dir := targetDir(pods, n); dir != pods; dir = filepath.Dir(dir) {
			if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("remove the directory of a pod: %w", err)
			}
		}
	}
	return nil
}

func publishRequest(pods string, n names) *csi.NodePublishVolumeRequest {
	return &csi.NodePublishVolumeRequest{
		VolumeId: n.id, TargetPath: target(pods, n),
		VolumeCapability: &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		},
		VolumeContext: map[string]string{
			podUIDKey:                                n.pod,
			"csi.storage.k8s.io/ephemeral":           "true",
			"csi.storage.k8s.io/pod.name":            n.podName,
			"csi.storage.k8s.io/pod.namespace":       namespace,
			"csi.storage.k8s.io/serviceAccount.name": account,
		},
	}
}

func unpublishRequest(pods string, n names) *csi.NodeUnpublishVolumeRequest {
	return &csi.NodeUnpublishVolumeRequest{VolumeId: n.id, TargetPath: target(pods, n)}
}
