package csi

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/pools"
)

func TestIdentity(t *testing.T) {
	f := &fakePools{}
	conn := serve(t, f)
	identity := csi.NewIdentityClient(conn)
	info, err := identity.GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
	if err != nil || info.GetName() != "array.csi.katbox.io" || info.GetVendorVersion() != "1" {
		t.Errorf("%v, %v", info, err)
	}
	can, err := identity.GetPluginCapabilities(t.Context(), &csi.GetPluginCapabilitiesRequest{})
	if err != nil || len(can.GetCapabilities()) != 2 ||
		can.Capabilities[0].GetService().GetType() != csi.PluginCapability_Service_CONTROLLER_SERVICE ||
		can.Capabilities[1].GetVolumeExpansion().GetType() != csi.PluginCapability_VolumeExpansion_ONLINE {
		t.Errorf("%v, %v", can, err)
	}
	for _, notReady := range []error{nil, errors.New("starting")} {
		f.err = notReady
		probe, err := identity.Probe(t.Context(), &csi.ProbeRequest{})
		if err != nil || probe.GetReady().GetValue() != (notReady == nil) {
			t.Errorf("%v: %v, %v", notReady, probe, err)
		}
	}
	caps, err := csi.NewControllerClient(conn).ControllerGetCapabilities(t.Context(), &csi.ControllerGetCapabilitiesRequest{})
	if err != nil || len(caps.GetCapabilities()) != 12 {
		t.Errorf("%d capabilities, %v, want 12", len(caps.GetCapabilities()), err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Kind: pools.KindArray, Name: "array.csi.katbox.io", Pools: &fakePools{}, Log: logr.Discard(),
		Count: func(string) edge.Calls { return uncounted{} }}
	for name, change := range map[string]func(*Config){
		"name": func(c *Config) { c.Name = "" }, "pools": func(c *Config) { c.Pools = nil }, "count": func(c *Config) { c.Count = nil },
		"kind": func(c *Config) { c.Kind = "" },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("without a good %s there is a driver", name)
		}
	}
}

// TestWhatNothingCanHaveIsGone: an ID that is no name in Kubernetes is not an error to delete.
func TestWhatNothingCanHaveIsGone(t *testing.T) {
	f := &fakePools{}
	client := csi.NewControllerClient(serve(t, f))
	for _, odd := range []string{"No Volume", "../etc", "a/b", "Ω"} {
		_, err1 := client.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: odd})
		_, err2 := client.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: odd})
		_, err3 := client.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: odd})
		_, err4 := client.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: "v", NodeId: odd})
		snaps, err5 := client.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SnapshotId: odd})
		if err := errors.Join(err1, err2, err3, err4, err5); err != nil || len(snaps.GetEntries()) != 0 {
			t.Errorf("%q: %v, %v", odd, snaps, err)
		}
		if _, err := client.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{VolumeId: odd}); status.Code(err) != codes.NotFound {
			t.Errorf("%q: %v, want NotFound", odd, err)
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("asked for %+v", f.asked)
	}
	if _, err := client.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: "v"}); err != nil {
		t.Error(err)
	}
	if got := f.only(t); got != (detached{volume: "v"}) {
		t.Errorf("asked for %+v, want to detach from all nodes", got)
	}
}

func TestMissingIDsAreInvalid(t *testing.T) {
	client := csi.NewControllerClient(serve(t, &fakePools{}))
	_, create := client.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "s"})
	_, remove := client.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{})
	_, unsnap := client.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{})
	_, unpublish := client.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{})
	_, noNode := client.ControllerPublishVolume(t.Context(),
		&csi.ControllerPublishVolumeRequest{VolumeId: "v", VolumeCapability: blockOf(single)})
	_, noUse := client.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: "n"})
	_, noCaps := client.ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{VolumeId: "v"})
	_, noRange := client.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: "v"})
	_, oddParameter := client.CreateSnapshot(t.Context(),
		&csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v", Parameters: map[string]string{"a": "b"}})
	_, oddPage := client.ListVolumes(t.Context(), &csi.ListVolumesRequest{MaxEntries: -1})
	for name, err := range map[string]error{"create": create, "remove": remove, "unsnap": unsnap, "unpublish": unpublish, "no node": noNode,
		"no use": noUse, "no capabilities": noCaps, "no range": noRange, "parameter": oddParameter, "page": oddPage} {
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, want InvalidArgument", name, err)
		}
	}
}

func TestPublishContextHasWhatTheNodeNeeds(t *testing.T) {
	for name, tt := range map[string]struct {
		volume     pools.Volume
		attachment pools.Attachment
		use        *csi.VolumeCapability
		asked      pools.NewAttachment
		want       map[string]string
	}{
		"nfs on many nodes": {
			pools.Volume{ID: "v", Protocol: pools.NFS}, pools.Attachment{Protocol: pools.NFS, Export: "10.0.0.1:/export/v"},
			mountOf(multi, "nfs"), pools.NewAttachment{Volume: "v", Node: "n", Shared: true},
			map[string]string{"protocol": "nfs", "export": "10.0.0.1:/export/v"},
		},
		"block": {
			pools.Volume{ID: "v", Protocol: pools.ISCSI, Block: true},
			pools.Attachment{Protocol: pools.ISCSI, Target: "iqn.x:1", Portal: "10.0.0.1:3260", LUN: 3,
				Serial: "volume-00000001", CHAPSecret: "chap-a"},
			blockOf(single), pools.NewAttachment{Volume: "v", Node: "n"},
			map[string]string{"protocol": "iscsi", "target": "iqn.x:1", "portal": "10.0.0.1:3260", "lun": "3",
				"serial": "volume-00000001", "chapSecret": "chap-a"},
		},
		"read-only file system on iSCSI": {
			pools.Volume{ID: "v", Protocol: pools.ISCSI},
			pools.Attachment{Protocol: pools.ISCSI, Target: "iqn.x:1", Portal: "p", Serial: "s", ReadOnly: true},
			mountOf(singleRead, ""), pools.NewAttachment{Volume: "v", Node: "n", ReadOnly: true},
			map[string]string{"protocol": "iscsi", "target": "iqn.x:1", "portal": "p", "lun": "0", "serial": "s",
				"fsType": "ext4", "readOnly": "true"},
		},
	} {
		f := &fakePools{volumes: []pools.Volume{tt.volume}, attached: tt.attachment}
		got, err := csi.NewControllerClient(serve(t, f)).ControllerPublishVolume(t.Context(),
			&csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: "n", VolumeCapability: tt.use})
		if err != nil || !reflect.DeepEqual(got.GetPublishContext(), tt.want) {
			t.Errorf("%s: %v, %v, want %v", name, got.GetPublishContext(), err, tt.want)
		}
		if asked := f.only(t); asked != tt.asked {
			t.Errorf("%s: asked for %+v, want %+v", name, asked, tt.asked)
		}
	}
}

func TestVolumeIsNotUsedAsWhatItIsNot(t *testing.T) {
	file, disk, block := pools.Volume{ID: "file", Protocol: pools.NFS, Class: "c"},
		pools.Volume{ID: "disk", Protocol: pools.ISCSI, Class: "c"}, pools.Volume{ID: "block", Protocol: pools.ISCSI, Block: true, Class: "c"}
	f := &fakePools{volumes: []pools.Volume{file, disk, block}}
	client := csi.NewControllerClient(serve(t, f))
	for _, tt := range []struct {
		volume string
		use    *csi.VolumeCapability
		fits   bool
	}{
		{"file", mountOf(multi, ""), true}, {"file", blockOf(single), false},
		{"disk", mountOf(single, "xfs"), true}, {"disk", mountOf(multi, ""), false}, {"disk", mountOf(single, "nfs"), false},
		{"disk", mountOf(multiRead, ""), true}, {"block", blockOf(multi), true}, {"block", mountOf(single, ""), false},
	} {
		_, err := client.ControllerPublishVolume(t.Context(),
			&csi.ControllerPublishVolumeRequest{VolumeId: tt.volume, NodeId: "n", VolumeCapability: tt.use})
		if code := status.Code(err); code != codes.OK && code != codes.InvalidArgument || (err == nil) != tt.fits {
			t.Errorf("%s as %v: %v, want it to fit: %t", tt.volume, tt.use, err, tt.fits)
		}
		answer, err := client.ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{
			VolumeId: tt.volume, VolumeCapabilities: []*csi.VolumeCapability{tt.use}})
		if err != nil || (answer.GetConfirmed() != nil) != tt.fits || (answer.GetMessage() == "") != tt.fits {
			t.Errorf("%s as %v: %v, %v, want it confirmed: %t", tt.volume, tt.use, answer, err, tt.fits)
		}
	}
	for key, value := range map[string]string{"poolClass": "other", "protocol": "iscsi", "zzz": ""} {
		answer, err := client.ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{VolumeId: "file",
			VolumeCapabilities: []*csi.VolumeCapability{mountOf(single, "")}, Parameters: map[string]string{key: value}})
		if err != nil || answer.GetConfirmed() != nil {
			t.Errorf("%s %s: %v, %v, want it not confirmed", key, value, answer, err)
		}
	}
}

func TestListsArePagedByTokens(t *testing.T) {
	f := &fakePools{more: true,
		volumes: []pools.Volume{{ID: "a", Nodes: []string{"n1", "n2"}}, {ID: "b"}},
		snaps:   []pools.Snapshot{{ID: "s", Volume: "a"}}}
	client := csi.NewControllerClient(serve(t, f))
	got, err := client.ListVolumes(t.Context(), &csi.ListVolumesRequest{MaxEntries: 2})
	if err != nil || len(got.GetEntries()) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	if !slices.Equal(got.Entries[0].GetStatus().GetPublishedNodeIds(), []string{"n1", "n2"}) {
		t.Errorf("%v", got)
	}
	snaps, err := client.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SourceVolumeId: "a"})
	if err != nil || len(snaps.GetEntries()) != 1 || snaps.Entries[0].GetSnapshot().GetCreationTime() != nil {
		t.Fatalf("%v, %v", snaps, err)
	}
	f.more = false
	last, err := client.ListVolumes(t.Context(), &csi.ListVolumesRequest{StartingToken: got.GetNextToken()})
	if err != nil || last.GetNextToken() != "" {
		t.Errorf("%v, %v, want no further page", last, err)
	}
	want := []any{listed{pools.Page{Limit: 2}}, selected{pools.SnapshotSelection{Volume: "a"}, pools.Page{Limit: maxPage}},
		listed{pools.Page{After: "b", Limit: maxPage}}}
	if !reflect.DeepEqual(f.asked, want) {
		t.Errorf("asked for %+v, want %+v", f.asked, want)
	}
	for _, odd := range []string{"invalid", snaps.GetNextToken(), volumeToken + "../x"} {
		if _, err := client.ListVolumes(t.Context(), &csi.ListVolumesRequest{StartingToken: odd}); status.Code(err) != codes.Aborted {
			t.Errorf("token %q: %v, want Aborted", odd, err)
		}
	}
}

func TestAnswersSayWhatThereIs(t *testing.T) {
	f := &fakePools{capacity: pools.Capacity{Available: 10 << 30, Largest: 4 << 30}}
	client := csi.NewControllerClient(serve(t, f))
	req := createRequest()
	req.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: "s"}}}
	made, err := client.CreateVolume(t.Context(), req)
	if err != nil || made.GetVolume().GetVolumeId() != "pvc-1" || made.Volume.GetCapacityBytes() != 1<<30 ||
		made.Volume.GetContentSource().GetSnapshot().GetSnapshotId() != "s" {
		t.Errorf("%v, %v", made, err)
	}
	grown, err := client.ControllerExpandVolume(t.Context(),
		&csi.ControllerExpandVolumeRequest{VolumeId: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 30}})
	if err != nil || grown.GetCapacityBytes() != 2<<30 || !grown.GetNodeExpansionRequired() {
		t.Errorf("%v, %v", grown, err)
	}
	taken, err := client.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v"})
	if s := taken.GetSnapshot(); err != nil || s.GetSnapshotId() != "s" || s.GetSourceVolumeId() != "v" || s.GetSizeBytes() != 1<<30 ||
		!s.GetReadyToUse() || s.GetCreationTime().GetSeconds() != 1 {
		t.Errorf("%v, %v", taken, err)
	}
	room, err := client.GetCapacity(t.Context(), &csi.GetCapacityRequest{Parameters: map[string]string{"poolClass": "fast"}})
	if err != nil || room.GetAvailableCapacity() != 10<<30 || room.GetMaximumVolumeSize().GetValue() != 4<<30 ||
		room.GetMinimumVolumeSize().GetValue() != 1<<30 {
		t.Errorf("%v, %v", room, err)
	}
	none, err := client.GetCapacity(t.Context(), &csi.GetCapacityRequest{Parameters: map[string]string{"protocol": "iscsi"},
		VolumeCapabilities: []*csi.VolumeCapability{mountOf(multi, "")}})
	if err != nil || none.GetAvailableCapacity() != 0 {
		t.Errorf("room for what cannot be made: %v, %v", none, err)
	}
}

func TestLogNamesWhatACallIsAbout(t *testing.T) {
	for want, req := range map[string]any{
		"[name s volumeID v]": &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v", Secrets: map[string]string{"a": "b"}},
		"[volumeID v node n]": &csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: "n"},
		"[name pvc-1 namespace shop claim data]": &csi.CreateVolumeRequest{Name: "pvc-1", Parameters: map[string]string{
			keyClaimNamespace: "shop", keyClaimName: "data"}},
		"[snapshotID s]": &csi.DeleteSnapshotRequest{SnapshotId: "s"},
		"[]":             &csi.ProbeRequest{},
	} {
		if got := text(named(req)); got != want {
			t.Errorf("%T: %s, want %s", req, got, want)
		}
	}
}
