package kubelet

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// driver is a CSI driver that mounts nothing: a path is a mount point if it is
// in the list. It keeps the rules of CSI and notes whoever breaks them.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer

	// What it offers.
	staging     bool
	controller  bool
	multiWriter bool

	mu      sync.Mutex
	log     []string
	changed chan struct{} // closed and replaced at each call
	mounts  map[string]bool
	faults  map[string][]fault
	// requests are the last of each kind and volume.
	publishes map[string]*csi.NodePublishVolumeRequest
	stages    map[string]*csi.NodeStageVolumeRequest
	wrong     []string

	connections atomic.Int32
}

// fault is how one call goes wrong.
type fault struct {
	code codes.Code
	// does says that the call does its work all the same.
	does bool
	// hangs says that there is no answer before the client is gone, or the
	// channel is closed.
	hangs chan struct{}
}

func newDriver() *driver {
	return &driver{
		changed:   make(chan struct{}),
		mounts:    make(map[string]bool),
		faults:    make(map[string][]fault),
		publishes: make(map[string]*csi.NodePublishVolumeRequest),
		stages:    make(map[string]*csi.NodeStageVolumeRequest),
	}
}

// serve serves on a socket until the test is over.
func (d *driver) serve(t *testing.T, socket string) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	csi.RegisterIdentityServer(s, d)
	csi.RegisterControllerServer(s, d)
	csi.RegisterNodeServer(s, d)
	var group sync.WaitGroup
	group.Go(func() { _ = s.Serve(counting{l, &d.connections}) })
	t.Cleanup(func() {
		s.Stop()
		group.Wait()
	})
}

// next has the next calls of the kind for the volume go wrong.
func (d *driver) next(what, volume string, faults ...fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults[what+" "+volume] = append(d.faults[what+" "+volume], faults...)
}

func (d *driver) isMounted(path string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mounts[path], nil
}

// counting counts connections.
type counting struct {
	net.Listener
	n *atomic.Int32
}

func (c counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

// do notes a call and does its work, if it is not to go wrong.
func (d *driver) do(ctx context.Context, what, volume string, work func() error) error {
	d.mu.Lock()
	name := what + " " + volume
	d.log = append(d.log, name)
	close(d.changed)
	d.changed = make(chan struct{})
	var f fault
	if list := d.faults[name]; len(list) > 0 {
		f, d.faults[name] = list[0], list[1:]
	}
	d.mu.Unlock()
	if f.hangs != nil {
		select {
		case <-f.hangs:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	if f.code != codes.OK && !f.does {
		return status.Error(f.code, "as told")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := work(); err != nil {
		d.wrong = append(d.wrong, fmt.Sprintf("%s: %v", name, err))
		return status.Error(codes.Internal, err.Error())
	}
	if f.code != codes.OK {
		return status.Error(f.code, "as told")
	}
	return nil
}

// seen are the calls so far, in the order in which they came.
func (d *driver) seen() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.log)
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	r := &csi.GetPluginCapabilitiesResponse{}
	if d.controller {
		r.Capabilities = append(r.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE},
		}})
	}
	return r, nil
}

func (d *driver) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{{
		Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{
			Type: csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		}},
	}}}, nil
}

func (d *driver) NodeGetInfo(ctx context.Context, _ *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: "node-1"}, d.do(ctx, "info", "", func() error { return nil })
}

func (d *driver) NodeGetCapabilities(ctx context.Context, _ *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	r := &csi.NodeGetCapabilitiesResponse{}
	add := func(has bool, what csi.NodeServiceCapability_RPC_Type) {
		if has {
			r.Capabilities = append(r.Capabilities, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{
				Rpc: &csi.NodeServiceCapability_RPC{Type: what},
			}})
		}
	}
	add(d.staging, csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	add(d.multiWriter, csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)
	return r, d.do(ctx, "capabilities", "", func() error { return nil })
}

func (d *driver) ControllerPublishVolume(
	ctx context.Context, r *csi.ControllerPublishVolumeRequest,
) (*csi.ControllerPublishVolumeResponse, error) {
	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{"device": r.GetVolumeId()}},
		d.do(ctx, "attach", r.GetVolumeId(), func() error {
			if r.GetNodeId() != "node-1" || r.GetVolumeCapability() == nil {
				return fmt.Errorf("bad request %v", r)
			}
			return nil
		})
}

func (d *driver) ControllerUnpublishVolume(
	ctx context.Context, r *csi.ControllerUnpublishVolumeRequest,
) (*csi.ControllerUnpublishVolumeResponse, error) {
	return &csi.ControllerUnpublishVolumeResponse{}, d.do(ctx, "detach", r.GetVolumeId(), func() error {
		for path := range d.mounts {
			if d.stages[r.GetVolumeId()].GetStagingTargetPath() == path {
				return fmt.Errorf("it is staged at %s", path)
			}
		}
		return nil
	})
}

func (d *driver) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	return &csi.NodeStageVolumeResponse{}, d.do(ctx, "stage", r.GetVolumeId(), func() error {
		if _, err := os.Stat(r.GetStagingTargetPath()); err != nil {
			return err
		}
		d.stages[r.GetVolumeId()] = r
		d.mounts[r.GetStagingTargetPath()] = true
		return nil
	})
}

func (d *driver) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, d.do(ctx, "unstage", r.GetVolumeId(), func() error {
		for path := range d.mounts {
			for _, p := range d.publishes {
				if p.GetTargetPath() == path && p.GetVolumeId() == r.GetVolumeId() {
					return fmt.Errorf("it is published at %s", path)
				}
			}
		}
		delete(d.mounts, r.GetStagingTargetPath())
		return nil
	})
}

func (d *driver) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	return &csi.NodePublishVolumeResponse{}, d.do(ctx, "publish", r.GetVolumeId(), func() error {
		if s := r.GetStagingTargetPath(); s != "" && !d.mounts[s] {
			return fmt.Errorf("it is not staged at %s", s)
		}
		if _, err := os.Stat(filepath.Dir(r.GetTargetPath())); err != nil {
			return err
		}
		if err := os.MkdirAll(r.GetTargetPath(), 0o755); err != nil {
			return err
		}
		d.publishes[r.GetTargetPath()] = r
		d.mounts[r.GetTargetPath()] = true
		return nil
	})
}

func (d *driver) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	// It leaves the target to the kubelet.
	return &csi.NodeUnpublishVolumeResponse{}, d.do(ctx, "unpublish", r.GetVolumeId(), func() error {
		delete(d.mounts, r.GetTargetPath())
		return nil
	})
}
