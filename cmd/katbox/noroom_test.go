package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestFullKubeletDirectoryDeletesNothing: the kubelet's own file system has no inode left
// for a target. Retained volumes, on another file system, stay.
func TestFullKubeletDirectoryDeletesNothing(t *testing.T) {
	const volumes = 3
	d := newDaemon(t, "--headroom", "0.0001", "--pruneinterval", "100ms")
	kubelet := d.layout().Kubelet
	roottest.Mount(t, "katbox-test", kubelet, "tmpfs", 0, "size=1m,nr_inodes=200")
	for i := range volumes + 1 {
		d.makePod(podName(i))
	}
	d.start()
	for i := range volumes {
		d.publish(podName(i), volumeID(i))
		d.unpublish(podName(i), volumeID(i))
	}
	for i := 0; ; i++ {
		if err := os.Mkdir(filepath.Join(kubelet, volumeID(i)), 0o700); err != nil {
			break // no inode is left
		}
	}
	for range 2 * volumes {
		_, err := d.node.NodePublishVolume(t.Context(), d.request(podName(volumes), volumeID(volumes)))
		if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "working directory") {
			t.Fatalf("publish: %v, want Internal, and nothing of the working directory", err)
		}
	}
	d.signal(syscall.SIGTERM) // everything that it began is complete then
	for i := range volumes {
		if !exists(d.data(podName(i), volumeID(i))) {
			t.Errorf("volume %d is gone", i)
		}
	}
}
