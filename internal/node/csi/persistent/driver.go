package persistent

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
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// Volumes is what the driver offers over CSI. Every call may be repeated: the same one shares the outcome
// of the one that runs. A call returns volume.ErrUnavailable while an array does not answer, and goes on
// behind that. It returns volume.ErrFailed only when nothing that it did is left.
type Volumes interface {
	// Stage makes a volume ready on the node, at a path that exists.
	Stage(ctx context.Context, s pools.Staging) error
	// Unstage undoes that, also after a Stage that failed. What is not staged is unstaged.
	Unstage(ctx context.Context, volume, path string) error
	// Publish gives a staged volume to a pod; volume.ErrNotStaged if it is not staged.
	Publish(ctx context.Context, p pools.NodePublication) error
	// Unpublish undoes that, and removes the target.
	Unpublish(ctx context.Context, volume, target string) error
	// Expand makes a volume that has grown on its array as large on the node, and returns its bytes.
	Expand(ctx context.Context, e pools.NodeExpansion) (int64, error)
	// Stats measures a volume that is staged or published at path.
	Stats(ctx context.Context, id, path string) (volume.Stats, error)
	// Ready returns nil when calls can be served, whether the arrays answer or not.
	Ready(ctx context.Context) error
}

// Config is what a Driver works with. All fields except MaxVolumes and Trace are required, and Segments for
// [pools.KindLocal] alone.
type Config struct {
	Kind       pools.Kind // what the volumes are on
	Name       string     // as in the CSIDriver object
	Version    string
	NodeID     string // the node's name in the cluster
	KubeletDir string // the kubelet's root directory
	MaxVolumes int64  // how many volumes may be attached to the node; 0 is any number
	Volumes    Volumes
	// Segments returns the topology of the node: which pools its volumes can be in.
	Segments func(context.Context) (map[string]string, error)
	Log      logr.Logger
	Count    func(method string) edge.Calls // the counters of a CSI method
	Trace    grpc.UnaryServerInterceptor    // makes a span of each call; nil for none
}

// Driver implements the CSI Identity and Node services.
type Driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	cfg Config
	// podsDir and pluginsDir are the kubelet's: it wants volumes nowhere else.
	podsDir, pluginsDir string
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
	case cfg.Kind != pools.KindArray && cfg.Kind != pools.KindLocal:
		return nil, fmt.Errorf("csi/persistent: Config.Kind %q is not known", cfg.Kind)
	case (cfg.Segments == nil) != (cfg.Kind == pools.KindArray):
		return nil, errors.New("csi/persistent: Config.Segments is for pools on the node, and for those alone")
	case cfg.Volumes == nil:
		return nil, errors.New("csi/persistent: Config.Volumes is missing")
	case cfg.Count == nil:
		return nil, errors.New("csi/persistent: Config.Count is missing")
	}
	return &Driver{cfg: cfg, podsDir: kubelet.PodsDir(cfg.KubeletDir), pluginsDir: kubelet.PluginsDir(cfg.KubeletDir)}, nil
}

// NewServer returns a server for the driver.
func NewServer(d *Driver) *edge.Server {
	return edge.New(edge.Config{
		Services: []edge.Service{{Desc: &csi.Identity_ServiceDesc, Implementation: d}, {Desc: &csi.Node_ServiceDesc, Implementation: d}},
		Code:     codeOf, Names: d.named, Count: d.cfg.Count, Log: d.cfg.Log, Trace: d.cfg.Trace,
	})
}

// named returns what a request is about, as keys and values of a log line. The request may be invalid.
func (d *Driver) named(req any) (fields []any) {
	add := func(key, value string) {
		if value != "" {
			fields = append(fields, key, value)
		}
	}
	path := func(key, value string) {
		pod, name := kubelet.ParseTarget(d.podsDir, value)
		if pod == "" {
			pod, name = kubelet.ParseDevice(d.pluginsDir, value)
		}
		add(logkeys.PodUID, string(pod))
		add(logkeys.Volume, name)
		add(key, value)
	}
	if r, ok := req.(interface{ GetVolumeId() string }); ok {
		add(logkeys.VolumeID, r.GetVolumeId())
	}
	switch r := req.(type) {
	case interface{ GetTargetPath() string }:
		path(logkeys.Target, r.GetTargetPath())
	case interface{ GetVolumePath() string }:
		path(logkeys.Target, r.GetVolumePath())
	case interface{ GetVolumePublishPath() string }:
		path(logkeys.Target, r.GetVolumePublishPath())
	case interface{ GetStagingTargetPath() string }:
		add(logkeys.Staging, r.GetStagingTargetPath())
	}
	return fields
}

// GetPluginInfo returns the driver's name and version.
func (d *Driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.cfg.Name, VendorVersion: d.cfg.Version}, nil
}

// GetPluginCapabilities reports what the controller's plugin reports: there is a controller service, and
// volumes grow while they are in use. One on a node's disk is on that node alone.
func (d *Driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	if d.cfg.Kind == pools.KindLocal {
		return edge.PoolsPlugin(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS), nil
	}
	return edge.PoolsPlugin(), nil
}

// Probe reports whether the driver is ready. An array that does not answer makes no difference.
func (d *Driver) Probe(ctx context.Context, _ *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	err := d.cfg.Volumes.Ready(ctx)
	if err != nil {
		d.cfg.Log.Info("not ready", logkeys.Cause, err.Error())
	}
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(err == nil)}, nil
}
