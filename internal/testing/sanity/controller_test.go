package sanity

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// controller stands in for the controller service that the driver does not
// have. csi-sanity knows no inline volumes: it takes the volume context, which
// the kubelet makes for those, from CreateVolume, and without a controller it
// would skip every spec that publishes a volume.
type controller struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
}

// serveController returns the socket of a stand-in.
func serveController(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "controller.sock")
	listener, err := net.Listen("unix", socket)
	must(t, err)
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, controller{})
	csi.RegisterControllerServer(server, controller{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		must(t, <-served)
	})
	return socket
}

func (controller) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "stand-in"}, nil
}

func (controller) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{controllerService()}}, nil
}

func (controller) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (controller) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{{
		Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{
			Type: csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		}},
	}}}, nil
}

// CreateVolume makes up what the kubelet would send for an inline volume.
func (controller) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: fmt.Sprintf("csi-%x", sha256.Sum256([]byte(req.GetName()))),
		VolumeContext: map[string]string{
			"csi.storage.k8s.io/ephemeral":     "true",
			"csi.storage.k8s.io/pod.uid":       podUID,
			"csi.storage.k8s.io/pod.name":      "sanity",
			"csi.storage.k8s.io/pod.namespace": "default",
		},
	}}, nil
}

func (controller) DeleteVolume(context.Context, *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, nil
}

func controllerService() *csi.PluginCapability {
	return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
		Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE},
	}}
}

// claimController is a grpc.UnaryClientInterceptor that adds the stand-in to
// what the driver says it can do.
func claimController(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, conn, opts...)
	if r, ok := reply.(*csi.GetPluginCapabilitiesResponse); ok && err == nil {
		r.Capabilities = append(r.Capabilities, controllerService())
	}
	return err
}
