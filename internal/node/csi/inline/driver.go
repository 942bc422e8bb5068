package inline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
)

// Volumes is what the driver offers over CSI; *ephemeral.Node implements it.
type Volumes interface {
	// Publish mounts a volume. Repeating it is harmless, as with Unpublish.
	Publish(ctx context.Context, p volume.Publication) error
	// Unpublish unmounts a volume from target and removes target.
	Unpublish(ctx context.Context, id volume.ID, target string) error
	// Stats measures a volume that is published at path.
	Stats(ctx context.Context, id volume.ID, path string) (volume.Stats, error)
	// Ready returns nil when calls can be served.
	Ready(ctx context.Context) error
}

// Terms are what is promised to a volume of the namespace with these attributes. An error that is an
// [volume.ErrInvalid] says which one is refused; with any other one the kubelet has to try again.
type Terms func(namespace string, attributes map[string]string) (volume.Terms, error)

// Config is what a Driver works with. All fields except MaxVolumes, Cut and Trace are required.
type Config struct {
	Name       string // as in the CSIDriver object
	Version    string
	NodeID     string // the node's name in the cluster
	KubeletDir string // the kubelet's root directory
	MaxVolumes int64  // how many volumes the node takes; 0 leaves that to the orchestrator
	Volumes    Volumes
	Terms      Terms
	// Cut says which lifespans among the attributes Terms cuts; "" for none. It may be nil.
	Cut     func(namespace string, attributes map[string]string) string
	Log     logr.Logger
	Metrics *metrics.Metrics
	Trace   grpc.UnaryServerInterceptor // makes a span of each call; nil for none
}

// Driver implements the CSI Identity and Node services.
type Driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	cfg     Config
	podsDir string
}

// New returns a driver, or says which field of cfg is not acceptable.
func New(cfg Config) (*Driver, error) {
	if err := errors.Join(edge.CheckName(cfg.Name), edge.CheckNodeID(cfg.NodeID)); err != nil {
		return nil, err
	}
	switch {
	case !filepath.IsAbs(cfg.KubeletDir):
		return nil, fmt.Errorf("kubelet directory %q is not an absolute path", cfg.KubeletDir)
	case cfg.MaxVolumes < 0:
		return nil, fmt.Errorf("maximum of volumes per node %d is negative", cfg.MaxVolumes)
	case cfg.Volumes == nil:
		return nil, errors.New("csi/inline: Config.Volumes is missing")
	case cfg.Terms == nil:
		return nil, errors.New("csi/inline: Config.Terms is missing")
	case cfg.Metrics == nil:
		return nil, errors.New("csi/inline: Config.Metrics is missing")
	}
	return &Driver{cfg: cfg, podsDir: kubelet.PodsDir(cfg.KubeletDir)}, nil
}

// GetPluginInfo returns the driver's name and version.
func (d *Driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.cfg.Name, VendorVersion: d.cfg.Version}, nil
}

// GetPluginCapabilities reports that volumes are tied to their node. There is no controller
// service: the kubelet makes inline volumes by publishing them.
func (d *Driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
			// The specification requires it of a driver that returns a topology.
			Type: csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
		}},
	}}}, nil
}

// Probe reports whether the driver is ready: recovery is over and the actors answer.
func (d *Driver) Probe(ctx context.Context, _ *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	err := d.cfg.Volumes.Ready(ctx)
	if err != nil {
		d.cfg.Log.Info("not ready", logkeys.Cause, err.Error())
	}
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(err == nil)}, nil
}
