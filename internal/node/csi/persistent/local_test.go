package persistent

import (
	"context"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
)

const poolUUID = "0f1e2d3c-4b5a-4697-8877-665544332211"

// localDriver is the driver of the pools on the node. Its topology is what segments returns.
func localDriver(t *testing.T, volumes Volumes, segments func(context.Context) (map[string]string, error)) *Driver {
	t.Helper()
	counted := metrics.New("", "")
	d, err := New(Config{
		Kind: pools.KindLocal, Name: "local.csi.katbox.io", NodeID: "node-1", KubeletDir: "/var/lib/kubelet", Volumes: volumes,
		Segments: segments, Log: logr.Discard(), Count: func(method string) edge.Calls { return counted.Method(method) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func nowhere(context.Context) (map[string]string, error) { return nil, nil }

// localRequest is what a kubelet sends for a volume on its own node.
func localRequest(c *csi.VolumeCapability) *csi.NodeStageVolumeRequest {
	return &csi.NodeStageVolumeRequest{
		VolumeId: "pvc-1", StagingTargetPath: stagingPath, VolumeCapability: c,
		VolumeContext: map[string]string{
			pools.PoolContext: poolUUID, "storage.kubernetes.io/csiProvisionerIdentity": "x", "csi.storage.k8s.io/pv/name": "pv",
		},
	}
}

func TestStageOfAVolumeOnTheNode(t *testing.T) {
	for name, tt := range map[string]struct {
		capability *csi.VolumeCapability
		want       pools.Staging
	}{
		"file system": {mounted(oneWriter, "xfs", "noatime"), pools.Staging{FSType: "xfs", Options: []string{"noatime"}}},
		"any":         {mounted(multiWriter, ""), pools.Staging{}},
		"read-only":   {mounted(oneReader, ""), pools.Staging{ReadOnly: true}},
		"block":       {block(oneWriter), pools.Staging{Block: true}},
	} {
		t.Run(name, func(t *testing.T) {
			volumes := &fakeVolumes{}
			d := localDriver(t, volumes, nowhere)
			if _, err := d.NodeStageVolume(t.Context(), localRequest(tt.capability)); err != nil {
				t.Fatal(err)
			}
			tt.want.Volume, tt.want.Path, tt.want.Pool = "pvc-1", stagingPath, poolUUID
			if got := volumes.all(); len(got) != 1 || !reflect.DeepEqual(got[0], tt.want) {
				t.Errorf("asked %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestStageOfAVolumeOnTheNodeRefuses(t *testing.T) {
	context := func(key, value string) func(*csi.NodeStageVolumeRequest) {
		return func(r *csi.NodeStageVolumeRequest) { r.VolumeContext[key] = value }
	}
	capability := func(c *csi.VolumeCapability) func(*csi.NodeStageVolumeRequest) {
		return func(r *csi.NodeStageVolumeRequest) { r.VolumeCapability = c }
	}
	for name, tt := range map[string]struct {
		spoil func(*csi.NodeStageVolumeRequest)
		field string
	}{
		"attached":           {func(r *csi.NodeStageVolumeRequest) { r.PublishContext = map[string]string{"a": "b"} }, "publish_context"},
		"no pool":            {func(r *csi.NodeStageVolumeRequest) { delete(r.VolumeContext, pools.PoolContext) }, "volume_context"},
		"no UUID":            {context(pools.PoolContext, "../x"), "volume_context"},
		"unknown key":        {context("pol", poolUUID), "volume_context"},
		"several nodes":      {capability(mounted(manyWriters, "")), "access_mode"},
		"readers on several": {capability(mounted(readers, "")), "access_mode"},
		"NFS":                {capability(mounted(oneWriter, "nfs")), "fs_type"},
		"no path":            {func(r *csi.NodeStageVolumeRequest) { r.StagingTargetPath = "" }, "staging_target_path"},
		"ID with a path":     {func(r *csi.NodeStageVolumeRequest) { r.VolumeId = "../x" }, "volume_id"},
	} {
		volumes := &fakeVolumes{}
		req := localRequest(mounted(oneWriter, ""))
		tt.spoil(req)
		_, err := localDriver(t, volumes, nowhere).NodeStageVolume(t.Context(), req)
		if code := codeOf(err); code != codes.InvalidArgument && code != codes.NotFound || !strings.Contains(err.Error(), tt.field) {
			t.Errorf("%s: %v, want an error about %s", name, err, tt.field)
		}
		if len(volumes.all()) > 0 {
			t.Errorf("%s: asked %v", name, volumes.all())
		}
	}
}

// TestTopologyIsThatOfThePools at the moment at which the kubelet asks.
func TestTopologyIsThatOfThePools(t *testing.T) {
	segments, failed := map[string]string{}, error(nil)
	d := localDriver(t, &fakeVolumes{}, func(context.Context) (map[string]string, error) { return segments, failed })
	info, err := d.NodeGetInfo(t.Context(), nil)
	if err != nil || info.GetAccessibleTopology() != nil || info.GetNodeId() != "node-1" {
		t.Errorf("without pools: %v, %v", info, err)
	}
	segments[pools.TopologyKey(poolUUID)] = pools.TopologyValue
	info, err = d.NodeGetInfo(t.Context(), nil)
	if err != nil || !maps.Equal(info.GetAccessibleTopology().GetSegments(), segments) {
		t.Errorf("with a pool: %v, %v", info, err)
	}
	failed = volume.ErrUnavailable
	if _, err := d.NodeGetInfo(t.Context(), nil); codeOf(err) != codes.Unavailable {
		t.Errorf("%v, want Unavailable", err)
	}
	plugin, err := d.GetPluginCapabilities(t.Context(), nil)
	if err != nil || len(plugin.GetCapabilities()) != 3 ||
		plugin.GetCapabilities()[2].GetService().GetType() != csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS {
		t.Errorf("capabilities %v, %v", plugin, err)
	}
}

func TestKindsOfDrivers(t *testing.T) {
	cfg := localDriver(t, &fakeVolumes{}, nowhere).cfg
	for name, spoil := range map[string]func(*Config){
		"Kind": func(c *Config) { c.Kind = "" }, "Segments": func(c *Config) { c.Segments = nil },
		"for those alone": func(c *Config) { c.Kind = pools.KindArray },
	} {
		bad := cfg
		spoil(&bad)
		if _, err := New(bad); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want an error about %s", err, name)
		}
	}
}
