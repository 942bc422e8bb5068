package csi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/pools"
)

// Pools is what the driver offers over CSI. Every call may be repeated. An error that leaves open what
// became of a call on the array is volume.ErrUncertain.
type Pools interface {
	// CreateVolume makes a volume. One with the name that was made for the same request is returned.
	CreateVolume(ctx context.Context, v pools.NewVolume) (pools.Volume, error)
	// DeleteVolume deletes a volume; one that does not exist is deleted.
	DeleteVolume(ctx context.Context, id string) error
	// GrowVolume makes a volume at least required and at most limit bytes large; a limit of 0 is none.
	GrowVolume(ctx context.Context, id string, required, limit int64) (pools.Volume, error)
	// Attach attaches a volume to a node.
	Attach(ctx context.Context, a pools.NewAttachment) (pools.Attachment, error)
	// Detach detaches a volume from a node, or from all if node is empty. After nil these nodes can
	// reach it no more. What does not exist is detached.
	Detach(ctx context.Context, volume, node string) error
	// CreateSnapshot takes a snapshot of a volume.
	CreateSnapshot(ctx context.Context, name, volume string) (pools.Snapshot, error)
	// DeleteSnapshot deletes a snapshot; one that does not exist is deleted.
	DeleteSnapshot(ctx context.Context, id string) error

	// Volume returns a volume, or volume.ErrNotFound.
	Volume(ctx context.Context, id string) (pools.Volume, error)
	// Volumes returns a page of all volumes by their IDs, and whether there are more.
	Volumes(ctx context.Context, p pools.Page) ([]pools.Volume, bool, error)
	// Snapshots returns a page of the selected snapshots by their IDs, and whether there are more.
	Snapshots(ctx context.Context, s pools.SnapshotSelection, p pools.Page) ([]pools.Snapshot, bool, error)
	// Capacity returns what a class has room for; volume.ErrNotFound if there is no such class.
	Capacity(ctx context.Context, want pools.Wanted) (pools.Capacity, error)
	// Ready returns nil when calls can be served.
	Ready(ctx context.Context) error
}

// Config is what a Driver works with. All fields except Serving and Trace are required.
type Config struct {
	Kind    pools.Kind // what the volumes are on
	Name    string     // as in the CSIDriver object
	Version string
	Pools   Pools
	// Serving is closed once Pools may be asked; nil means from the start. Until then Probe and all calls
	// that are about pools wait.
	Serving <-chan struct{}
	Log     logr.Logger
	Count   func(method string) edge.Calls // the counters of a CSI method
	Trace   grpc.UnaryServerInterceptor    // makes a span of each call; nil for none
}

// Driver implements the CSI Identity and Controller services.
type Driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	cfg Config
}

// New returns a driver, or says which field of cfg is not acceptable.
func New(cfg Config) (*Driver, error) {
	if err := edge.CheckName(cfg.Name); err != nil {
		return nil, err
	}
	switch {
	case cfg.Kind != pools.KindArray && cfg.Kind != pools.KindLocal:
		return nil, fmt.Errorf("controller: Config.Kind %q is not known", cfg.Kind)
	case cfg.Pools == nil:
		return nil, errors.New("controller: Config.Pools is missing")
	case cfg.Count == nil:
		return nil, errors.New("controller: Config.Count is missing")
	}
	return &Driver{cfg: cfg}, nil
}

// NewServer returns a server for the driver.
func NewServer(d *Driver) *edge.Server {
	return edge.New(edge.Config{
		Services: []edge.Service{
			{Desc: &csi.Identity_ServiceDesc, Implementation: d}, {Desc: &csi.Controller_ServiceDesc, Implementation: d},
		},
		Code: codeOf, Names: named, Count: d.cfg.Count, Log: d.cfg.Log, Trace: d.cfg.Trace, Hold: d.hold(),
	})
}

// named returns what a request is about, as keys and values of a log line.
func named(req any) (fields []any) {
	add := func(key, value string) {
		if value != "" {
			fields = append(fields, key, value)
		}
	}
	if r, ok := req.(interface{ GetName() string }); ok {
		add("name", r.GetName())
	}
	if r, ok := req.(interface{ GetVolumeId() string }); ok {
		add(logkeys.VolumeID, r.GetVolumeId())
	}
	if r, ok := req.(interface{ GetSourceVolumeId() string }); ok {
		add(logkeys.VolumeID, r.GetSourceVolumeId())
	}
	if r, ok := req.(interface{ GetSnapshotId() string }); ok {
		add("snapshotID", r.GetSnapshotId())
	}
	if r, ok := req.(interface{ GetNodeId() string }); ok {
		add(logkeys.Node, r.GetNodeId())
	}
	if r, ok := req.(interface{ GetParameters() map[string]string }); ok {
		add(logkeys.Namespace, r.GetParameters()[keyClaimNamespace])
		add("claim", r.GetParameters()[keyClaimName])
	}
	return fields
}

// GetPluginInfo returns the driver's name and version.
func (d *Driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.cfg.Name, VendorVersion: d.cfg.Version}, nil
}

// GetPluginCapabilities reports the controller service, and that volumes grow while they are in use. One on a node's
// disk is on that node alone.
func (d *Driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	if d.cfg.Kind == pools.KindLocal {
		return edge.PoolsPlugin(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS), nil
	}
	return edge.PoolsPlugin(), nil
}

// Probe reports whether the driver is ready.
func (d *Driver) Probe(ctx context.Context, _ *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	err := d.cfg.Pools.Ready(ctx)
	if err != nil {
		d.cfg.Log.Info("not ready", logkeys.Cause, err.Error())
	}
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(err == nil)}, nil
}

// capabilities are what the controller service can do, for volumes on arrays.
var capabilities = []csi.ControllerServiceCapability_RPC_Type{
	csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
	csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
	csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
	csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES,
	csi.ControllerServiceCapability_RPC_GET_CAPACITY,
	csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
	csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
	csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
	csi.ControllerServiceCapability_RPC_PUBLISH_READONLY,
	csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	csi.ControllerServiceCapability_RPC_GET_VOLUME,
}

// notLocal are those that it does not have for volumes on nodes, which are not attached.
var notLocal = []csi.ControllerServiceCapability_RPC_Type{
	csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
	csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES,
	csi.ControllerServiceCapability_RPC_PUBLISH_READONLY,
}

// ControllerGetCapabilities returns the capabilities of the controller service.
func (d *Driver) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	var resp csi.ControllerGetCapabilitiesResponse
	for _, capability := range capabilities {
		if d.cfg.Kind == pools.KindLocal && slices.Contains(notLocal, capability) {
			continue
		}
		resp.Capabilities = append(resp.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: capability}},
		})
	}
	return &resp, nil
}
