package csi

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/pools"
)

const (
	disk1 = "11111111-1111-4111-8111-111111111111"
	disk2 = "22222222-2222-4222-8222-222222222222"
	disk3 = "33333333-3333-4333-8333-333333333333"
)

// at is the topology of a node with some pools.
func at(uuids ...string) *csi.Topology {
	t := &csi.Topology{Segments: map[string]string{"kubernetes.io/hostname": "n1"}}
	for _, uuid := range uuids {
		t.Segments[pools.TopologyKey(uuid)] = pools.TopologyValue
	}
	return t
}

func TestWhatIsAskedForAVolumeOnANode(t *testing.T) {
	d := driverOf(t, &fakePools{}, pools.KindLocal)
	for name, tt := range map[string]struct {
		change func(*csi.CreateVolumeRequest)
		want   func(*pools.NewVolume)
	}{
		"plain": {func(*csi.CreateVolumeRequest) {}, func(*pools.NewVolume) {}},
		"the protocol": {func(r *csi.CreateVolumeRequest) {
			r.Parameters = map[string]string{"protocol": "local", "poolClass": "nvme"}
		},
			func(v *pools.NewVolume) { v.Class = "nvme" }},
		"block": {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = []*csi.VolumeCapability{blockOf(single)} },
			func(v *pools.NewVolume) { v.Block = true }},
		"a file system": {func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities = []*csi.VolumeCapability{mountOf(single, "xfs")}
		},
			func(v *pools.NewVolume) { v.FSType = "xfs" }},
		"one pod": {func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities = []*csi.VolumeCapability{mountOf(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, "")}
		}, func(*pools.NewVolume) {}},
		"near": {func(r *csi.CreateVolumeRequest) {
			r.AccessibilityRequirements = &csi.TopologyRequirement{
				Requisite: []*csi.Topology{at(disk1), at(), at(disk3, disk2)}, Preferred: []*csi.Topology{at(disk2, disk3), at(disk1)},
			}
		}, func(v *pools.NewVolume) { v.Near = [][]string{{disk2, disk3}, {disk1}} }},
		"requisite alone": {func(r *csi.CreateVolumeRequest) {
			r.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: []*csi.Topology{at(disk1)}}
		}, func(v *pools.NewVolume) { v.Near = [][]string{{disk1}} }},
	} {
		req := createRequest()
		tt.change(req)
		want := pools.NewVolume{Name: "pvc-1", Kind: pools.KindLocal, Protocol: pools.Local, Required: 1 << 30}
		tt.want(&want)
		if got, err := d.newVolume(req); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

func TestWhatNoVolumeOnANodeCanBe(t *testing.T) {
	f := &fakePools{}
	client := csi.NewControllerClient(serveKind(t, f, pools.KindLocal))
	parameter := func(key, value string) func(*csi.CreateVolumeRequest) {
		return func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{key: value} }
	}
	capable := func(of ...*csi.VolumeCapability) func(*csi.CreateVolumeRequest) {
		return func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = of }
	}
	for want, change := range map[string]func(*csi.CreateVolumeRequest){
		`is "nfs", and volumes of this driver are on the nodes`: parameter("protocol", "nfs"),
		`is "iscsi", and volumes of this driver`:                parameter("protocol", "iscsi"),
		"a volume on a node has no options":                     parameter("volumeOptions", `{"a": 1}`),
		"give ReadWriteOnce or ReadWriteOncePod":                capable(mountOf(multi, "")),
		"for pods on several nodes":                             capable(mountOf(single, ""), mountOf(multiRead, "")),
		"access_mode is for pods on several nodes":              capable(blockOf(multi)),
		`the file system "nfs": give ext4 or xfs, or nothing`:   capable(mountOf(single, "nfs")),
	} {
		req := createRequest()
		change(req)
		_, err := client.CreateVolume(t.Context(), req)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want InvalidArgument with %q", err, want)
		}
	}
	req := createRequest()
	req.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: []*csi.Topology{at()}}
	if _, err := client.CreateVolume(t.Context(), req); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("on nodes without pools: %v, want ResourceExhausted", err)
	}
	if len(f.asked) != 0 {
		t.Errorf("refused requests have asked for %+v", f.asked)
	}
}

func TestVolumesOnNodesSayWhereTheyAre(t *testing.T) {
	v := csiVolume(pools.Volume{ID: "v", Protocol: pools.Local, On: disk1})
	if len(v.GetAccessibleTopology()) != 1 ||
		!maps.Equal(v.GetAccessibleTopology()[0].GetSegments(), map[string]string{"local.csi.katbox.io/" + disk1: "here"}) ||
		!maps.Equal(v.GetVolumeContext(), map[string]string{pools.PoolContext: disk1}) {
		t.Errorf("the volume is %v", v)
	}
	if v := csiVolume(pools.Volume{ID: "v", Protocol: pools.NFS}); v.GetAccessibleTopology() != nil || v.GetVolumeContext() != nil {
		t.Errorf("a volume on an array is %v", v)
	}
}

func TestCapabilitiesOfVolumesOnNodes(t *testing.T) {
	conn := serveKind(t, &fakePools{}, pools.KindLocal)
	can, err := csi.NewIdentityClient(conn).GetPluginCapabilities(t.Context(), &csi.GetPluginCapabilitiesRequest{})
	if err != nil || len(can.GetCapabilities()) != 3 ||
		can.Capabilities[2].GetService().GetType() != csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS {
		t.Errorf("%v, %v", can, err)
	}
	client := csi.NewControllerClient(conn)
	caps, err := client.ControllerGetCapabilities(t.Context(), &csi.ControllerGetCapabilitiesRequest{})
	if err != nil || len(caps.GetCapabilities()) != 9 {
		t.Errorf("%v, %v", caps, err)
	}
	for _, one := range caps.GetCapabilities() {
		if what := one.GetRpc().GetType().String(); strings.Contains(what, "PUBLISH") {
			t.Errorf("it can %s", what)
		}
	}
	_, attach := client.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: "n"})
	_, detach := client.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: "v"})
	if status.Code(attach) != codes.Unimplemented || status.Code(detach) != codes.Unimplemented {
		t.Errorf("%v, %v; want Unimplemented", attach, detach)
	}
}

func TestCapacityOfASegment(t *testing.T) {
	there := &csi.Topology{Segments: map[string]string{pools.TopologyKey(disk1): "there"}}
	wanted := func(w pools.Wanted) string { w.Kind = pools.KindLocal; return fmt.Sprint(w) }
	capable := func(c *csi.VolumeCapability) *csi.GetCapacityRequest {
		return &csi.GetCapacityRequest{VolumeCapabilities: []*csi.VolumeCapability{c}}
	}
	for name, tt := range map[string]struct {
		req  *csi.GetCapacityRequest
		want string // empty: nothing is asked for, and there is none
	}{
		"all":         {&csi.GetCapacityRequest{}, wanted(pools.Wanted{})},
		"a node":      {&csi.GetCapacityRequest{AccessibleTopology: at(disk2, disk1)}, wanted(pools.Wanted{Near: [][]string{{disk1, disk2}}})},
		"no pool":     {&csi.GetCapacityRequest{AccessibleTopology: at()}, ""},
		"block":       {capable(blockOf(single)), wanted(pools.Wanted{Block: true})},
		"many nodes":  {capable(mountOf(multi, "")), ""},
		"other value": {&csi.GetCapacityRequest{AccessibleTopology: there}, ""},
	} {
		f := &fakePools{capacity: pools.Capacity{Available: 7 << 30, Largest: 5 << 30}}
		got, err := csi.NewControllerClient(serveKind(t, f, pools.KindLocal)).GetCapacity(t.Context(), tt.req)
		if err != nil {
			t.Fatal(err)
		}
		if tt.want == "" {
			if got.GetAvailableCapacity() != 0 || len(f.asked) > 0 {
				t.Errorf("%s: %v, asked for %+v", name, got, f.asked)
			}
			continue
		}
		if asked := fmt.Sprint(f.only(t)); asked != tt.want || got.GetAvailableCapacity() != 7<<30 ||
			got.GetMaximumVolumeSize().GetValue() != 5<<30 || got.GetMinimumVolumeSize().GetValue() != 1<<20 {
			t.Errorf("%s: %v, asked for %s, want %s", name, got, asked, tt.want)
		}
	}
}

func TestGrownVolumesOnNodesNeedNothingMore(t *testing.T) {
	d := driverOf(t, &fakePools{protocol: pools.Local}, pools.KindLocal)
	got, err := d.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{
		VolumeId: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 30},
	})
	if err != nil || got.GetNodeExpansionRequired() || got.GetCapacityBytes() != 2<<30 {
		t.Errorf("grew to %v, %v", got, err)
	}
}

func TestValidateAVolumeOnANode(t *testing.T) {
	f := &fakePools{volumes: []pools.Volume{{ID: "v", Protocol: pools.Local, Class: "nvme"}}}
	d := driverOf(t, f, pools.KindLocal)
	for name, tt := range map[string]struct {
		c  *csi.VolumeCapability
		ok bool
	}{"one node": {mountOf(single, "ext4"), true}, "many nodes": {mountOf(multi, ""), false}, "nfs": {mountOf(single, "nfs"), false},
		"block": {blockOf(single), false}} {
		got, err := d.ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{
			VolumeId: "v", VolumeCapabilities: []*csi.VolumeCapability{tt.c},
		})
		if err != nil || (got.GetConfirmed() != nil) != tt.ok {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
