package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"github.com/katbox/katbox/internal/pools"
	"github.com/katbox/katbox/soak/testbed"
)

// arrayDaemon is a daemon that serves volumes of arrays too.
type arrayDaemon struct {
	*daemon
	// arrayNode are the calls of the kubelet for these volumes.
	arrayNode csi.NodeClient
}

// newArrayDaemon prepares a daemon that asks the API server at a URL.
func newArrayDaemon(t testing.TB, api string, flags ...string) *arrayDaemon {
	t.Helper()
	a := &arrayDaemon{daemon: newDaemon(t)}
	a.servesArrays(api)
	a.flags = append(a.flags, flags...)
	return a
}

// servesArrays gives the daemon what it needs for volumes of arrays.
func (a *arrayDaemon) servesArrays(api string) {
	a.t.Helper()
	credentials := credentialsDir(a.t, a.dir)
	a.flags = append(a.flags, "--array-endpoint", "unix://"+a.arraySocket(), "--node-addresses", "127.0.0.1", "--kube-api", api,
		"--kube-credentials", credentials)
	a.arrayNode = nodeClient(a.t, a.arraySocket(), testbed.Eager(), testbed.Waiting())
}

// nodeClient returns the calls of a driver at a socket.
func nodeClient(t testing.TB, path string, options ...grpc.DialOption) csi.NodeClient {
	t.Helper()
	conn, err := testbed.Dial(path, options...)
	must(t, err)
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return csi.NewNodeClient(conn)
}

// credentialsDir makes a directory with a token, as a pod has it.
func credentialsDir(t testing.TB, in string) string {
	t.Helper()
	dir := filepath.Join(in, "credentials")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "token"), []byte("token"), 0o600))
	return dir
}

// silentServer takes connections and says nothing, like an API server that hangs.
func silentServer(t testing.TB) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

func (a *arrayDaemon) arraySocket() string { return filepath.Join(a.dir, "array", "csi.sock") }

// records are the names of the records of staged volumes.
func (a *arrayDaemon) stagedRecords() (names []string) {
	a.t.Helper()
	entries, err := os.ReadDir(filepath.Join(a.dir, "array", "staged"))
	if err != nil && !os.IsNotExist(err) {
		a.t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// plugins is the kubelet's directory of plugins for CSI.
func (a *arrayDaemon) plugins() string {
	return filepath.Join(a.dir, "kubelet/plugins/kubernetes.io/csi")
}

// pathsOf returns where the kubelet wants a volume staged and published. It looks at neither: what looks at a
// volume of an array that is away waits for the array.
func (a *arrayDaemon) pathsOf(id string, block bool) (staging, target string) {
	if block {
		return filepath.Join(a.plugins(), "volumeDevices/staging", id), filepath.Join(a.plugins(), "volumeDevices/publish", id, testPod)
	}
	return filepath.Join(a.plugins(), "array.csi.katbox.io", id, "globalmount"),
		filepath.Join(a.dir, "kubelet/pods", testPod, "volumes/kubernetes.io~csi", id, "mount")
}

// makePathsOf makes what the kubelet makes of them itself, before it stages and publishes.
func (a *arrayDaemon) makePathsOf(id string, block bool) (staging, target string) {
	a.t.Helper()
	staging, target = a.pathsOf(id, block)
	must(a.t, os.MkdirAll(staging, 0o750))
	must(a.t, os.MkdirAll(filepath.Dir(target), 0o750))
	return staging, target
}

// capabilityOf is what the kubelet sends for a ReadWriteOnce volume.
func capabilityOf(block bool) *csi.VolumeCapability {
	c := &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	}
	if block {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	}
	return c
}

// stage, publish, unpublish and unstage are the kubelet's calls for an attached volume.
func (a *arrayDaemon) stage(ctx context.Context, at pools.Attachment, block bool) error {
	staging, _ := a.makePathsOf(at.Volume, block)
	_, err := a.arrayNode.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: at.Volume, PublishContext: at.PublishContext(block), StagingTargetPath: staging, VolumeCapability: capabilityOf(block),
	})
	return err
}

func (a *arrayDaemon) publishStaged(ctx context.Context, at pools.Attachment, block bool) error {
	staging, target := a.makePathsOf(at.Volume, block)
	_, err := a.arrayNode.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: at.Volume, PublishContext: at.PublishContext(block), StagingTargetPath: staging, TargetPath: target,
		VolumeCapability: capabilityOf(block),
	})
	return err
}

func (a *arrayDaemon) unpublishStaged(ctx context.Context, at pools.Attachment, block bool) error {
	_, target := a.pathsOf(at.Volume, block)
	_, err := a.arrayNode.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: at.Volume, TargetPath: target})
	return err
}

func (a *arrayDaemon) unstage(ctx context.Context, at pools.Attachment, block bool) error {
	staging, _ := a.pathsOf(at.Volume, block)
	_, err := a.arrayNode.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: at.Volume, StagingTargetPath: staging})
	return err
}

func (a *arrayDaemon) expand(ctx context.Context, at pools.Attachment, block bool, bytes int64) (int64, error) {
	staging, target := a.pathsOf(at.Volume, block)
	answer, err := a.arrayNode.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
		VolumeId: at.Volume, VolumePath: target, StagingTargetPath: staging, VolumeCapability: capabilityOf(block),
		CapacityRange: &csi.CapacityRange{RequiredBytes: bytes},
	})
	return answer.GetCapacityBytes(), err
}

// wantNothingLeft checks that the machine has nothing of a volume any more.
func (a *arrayDaemon) wantNothingLeft(when string) {
	a.t.Helper()
	if records := a.stagedRecords(); len(records) != 0 {
		a.t.Errorf("%s: there are records of staged volumes: %q", when, records)
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	must(a.t, err)
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, a.plugins()) || strings.Contains(line, filepath.Join(a.dir, "kubelet/pods")+"/") {
			a.t.Errorf("%s: mounted: %s", when, line)
		}
	}
}
