//go:build e2e

package e2e

import (
	"context"
	"net"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// stubNode stands in for the node's part: it remembers the calls of the kubelet, and makes directories.
type stubNode struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	name string

	mu    sync.Mutex
	calls []string
}

func newStubNode(t *testing.T, name string) *stubNode {
	t.Helper()
	return &stubNode{name: name}
}

// serve serves until the end of the test.
func (n *stubNode) serve(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, n)
	csi.RegisterNodeServer(server, n)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
}

func (n *stubNode) called(method, volume string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if call := volume + " " + method; len(n.calls) == 0 || n.calls[len(n.calls)-1] != call {
		n.calls = append(n.calls, call)
	}
}

// has reports whether a method was called for a volume.
func (n *stubNode) has(method, volume string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.calls, volume+" "+method)
}

func (n *stubNode) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: poolsDriver, VendorVersion: "stub"}, nil
}

func (n *stubNode) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.name}, nil
}

func (n *stubNode) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{
		{Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}}},
	}}, nil
}

func (n *stubNode) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	n.called("stage", r.GetVolumeId())
	return &csi.NodeStageVolumeResponse{}, nil
}

func (n *stubNode) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	n.called("publish", r.GetVolumeId())
	if r.GetVolumeCapability().GetBlock() != nil {
		return nil, grpcstatus.Error(codes.Aborted, "there is no device here")
	}
	if err := os.MkdirAll(r.GetTargetPath(), 0o777); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n *stubNode) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	n.called("unpublish", r.GetVolumeId())
	return &csi.NodeUnpublishVolumeResponse{}, os.RemoveAll(r.GetTargetPath())
}

func (n *stubNode) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	n.called("unstage", r.GetVolumeId())
	return &csi.NodeUnstageVolumeResponse{}, nil
}
