package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/soak/testbed"
)

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

// volume is one of a server, for the kubelet.
func (n names) volume(l testbed.Layout) testbed.Volume {
	return testbed.Volume{Kubelet: l.Kubelet, Work: l.Work, Pod: n.pod, Name: volumeName, ID: n.id}
}

// makePods makes what a kubelet has of pods: the directories of their volumes, and their logs if the server keeps them.
func (v *server) makePods(list []names) error {
	for _, n := range list {
		if err := n.volume(v.layout).MakeTargetDir(); err != nil {
			return err
		}
		if v.logs == "" {
			continue
		}
		dir := filepath.Join(v.logDir(n), "main")
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "0.log"), printed, 0o644)); err != nil {
			return fmt.Errorf("make the log of a pod: %w", err)
		}
	}
	return nil
}

// printed is what the container of a pod printed, some 4 KiB.
var printed = bytes.Repeat([]byte("2026-11-30T05:00:00.123456789Z stdout F a line of a container\n"), 64)

func (v *server) logDir(n names) string {
	return filepath.Join(v.logs, namespace+"_"+n.podName+"_"+n.pod)
}

// removePods removes what makePods made, and nothing that is in the volumes.
func (v *server) removePods(list []names) error {
	for _, n := range list {
		for dir := n.volume(v.layout).TargetDir(); dir != v.layout.Pods(); dir = filepath.Dir(dir) {
			if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("remove the directory of a pod: %w", err)
			}
		}
		if v.logs == "" {
			continue
		}
		if err := os.RemoveAll(v.logDir(n)); err != nil {
			return fmt.Errorf("remove the log of a pod: %w", err)
		}
	}
	return nil
}

func publishRequest(l testbed.Layout, n names) *csi.NodePublishVolumeRequest {
	return testbed.Publish(n.id, n.volume(l).Target(), n.pod, map[string]string{
		"csi.storage.k8s.io/pod.name":            n.podName,
		"csi.storage.k8s.io/pod.namespace":       namespace,
		"csi.storage.k8s.io/serviceAccount.name": account,
	})
}

func unpublishRequest(l testbed.Layout, n names) *csi.NodeUnpublishVolumeRequest {
	return testbed.Unpublish(n.id, n.volume(l).Target())
}
