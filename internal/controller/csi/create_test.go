package csi

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/pools"
)

func TestWhatIsAskedForAVolume(t *testing.T) {
	asked := func(change func(*csi.CreateVolumeRequest)) pools.NewVolume {
		t.Helper()
		req := createRequest()
		change(req)
		got, err := driverOf(t, &fakePools{}, pools.KindArray).newVolume(req)
		if err != nil {
			t.Errorf("%v: %v", req, err)
		}
		return got
	}
	for name, tt := range map[string]struct {
		change func(*csi.CreateVolumeRequest)
		want   func(*pools.NewVolume)
	}{
		"plain": {func(*csi.CreateVolumeRequest) {}, func(*pools.NewVolume) {}},
		"any name": {func(r *csi.CreateVolumeRequest) { r.Name = "Ein Datenträger" },
			func(v *pools.NewVolume) { v.Name = "Ein Datenträger" }},
		"what a provisioner adds": {func(r *csi.CreateVolumeRequest) {
			r.Parameters = map[string]string{"csi.storage.k8s.io/pvc/name": "data", "csi.storage.k8s.io/pvc/namespace": "shop",
				"csi.storage.k8s.io/pv/name": "pvc-1"}
			r.CapacityRange.LimitBytes = 2 << 30
		}, func(v *pools.NewVolume) { v.Claim = pools.Claim{Namespace: "shop", Name: "data"}; v.Limit = 2 << 30 }},
		"a class": {func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"poolClass": "fast"} },
			func(v *pools.NewVolume) { v.Class = "fast" }},
		"the seed's class": {func(r *csi.CreateVolumeRequest) {
			r.Parameters = map[string]string{"VSCStorageClassName": "fast", "poolClass": ""}
		}, func(v *pools.NewVolume) { v.Class = "fast" }},
		"options": {func(r *csi.CreateVolumeRequest) {
			r.Parameters = map[string]string{"volumeOptions": `{"autoexpand": "YES", "readaheadkb": 64, "dedupe": true, "crypt": false}`}
		}, func(v *pools.NewVolume) {
			v.Options = map[string]string{"autoexpand": "YES", "readaheadkb": "64", "dedupe": "YES", "crypt": "NO"}
		}},
		"no options": {func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"volumeOptions": "{}"} },
			func(*pools.NewVolume) {}},
		"block": {func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities = []*csi.VolumeCapability{blockOf(multi)}
		}, func(v *pools.NewVolume) { v.Block, v.Protocol, v.Shared = true, pools.ISCSI, true }},
		"xfs over iSCSI": {func(r *csi.CreateVolumeRequest) {
			r.Parameters = map[string]string{"protocol": "iscsi"}
			r.VolumeCapabilities = []*csi.VolumeCapability{mountOf(single, "xfs")}
		}, func(v *pools.NewVolume) { v.Protocol, v.FSType = pools.ISCSI, "xfs" }},
		"a file system as a parameter": {func(r *csi.CreateVolumeRequest) {
			r.Parameters = map[string]string{"protocol": "iscsi", "csi.storage.k8s.io/fstype": "xfs"}
		}, func(v *pools.NewVolume) { v.Protocol, v.FSType = pools.ISCSI, "xfs" }},
		"nfs by its file system": {func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities = []*csi.VolumeCapability{mountOf(multi, "nfs")}
		}, func(v *pools.NewVolume) { v.Protocol, v.Shared = pools.NFS, true }},
		"a default file system that NFS does not need": {func(r *csi.CreateVolumeRequest) {
			r.Parameters = map[string]string{"protocol": "nfs"}
			r.VolumeCapabilities = []*csi.VolumeCapability{mountOf(multi, "ext4")}
		}, func(v *pools.NewVolume) { v.Protocol, v.Shared = pools.NFS, true }},
		"readers on several nodes": {func(r *csi.CreateVolumeRequest) {
			r.Parameters = map[string]string{"protocol": "iscsi"}
			r.VolumeCapabilities = []*csi.VolumeCapability{mountOf(single, ""), mountOf(multiRead, "ext4")}
		}, func(v *pools.NewVolume) { v.Protocol, v.FSType = pools.ISCSI, "ext4" }},
		"from a snapshot": {func(r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
				Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: "snapshot-1"}}}
		}, func(v *pools.NewVolume) { v.Source.Snapshot = "snapshot-1" }},
		"from a volume": {func(r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
				Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: "pvc-0"}}}
		}, func(v *pools.NewVolume) { v.Source.Volume = "pvc-0" }},
		"no size": {func(r *csi.CreateVolumeRequest) { r.CapacityRange = nil }, func(v *pools.NewVolume) { v.Required = 0 }},
	} {
		want := pools.NewVolume{Name: "pvc-1", Kind: pools.KindArray, Required: 1 << 30}
		tt.want(&want)
		if got := asked(tt.change); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestBadRequestsAreRefusedWithTheirField(t *testing.T) {
	parameters := func(of ...string) func(*csi.CreateVolumeRequest) {
		return func(r *csi.CreateVolumeRequest) {
			r.Parameters = map[string]string{}
			for i := 0; i < len(of); i += 2 {
				r.Parameters[of[i]] = of[i+1]
			}
		}
	}
	capable := func(of ...*csi.VolumeCapability) func(*csi.CreateVolumeRequest) {
		return func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = of }
	}
	iscsi := func(of ...*csi.VolumeCapability) func(*csi.CreateVolumeRequest) {
		return func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities, r.Parameters = of, map[string]string{"protocol": "iscsi"}
		}
	}
	f := &fakePools{}
	client := csi.NewControllerClient(serve(t, f))
	for want, change := range map[string]func(*csi.CreateVolumeRequest){
		"name is missing":                                              func(r *csi.CreateVolumeRequest) { r.Name = "" },
		"name is longer than 128 bytes":                                func(r *csi.CreateVolumeRequest) { r.Name = strings.Repeat("x", 129) },
		"name contains a control":                                      func(r *csi.CreateVolumeRequest) { r.Name = "a\x00b" },
		"volume_capabilities is missing":                               capable(),
		"has neither block nor mount":                                  capable(&csi.VolumeCapability{}),
		"access_mode is missing":                                       capable(mountOf(csi.VolumeCapability_AccessMode_UNKNOWN, "")),
		"access_mode 99 is not known":                                  capable(mountOf(99, "")),
		"both a block device and a file system":                        capable(blockOf(single), mountOf(single, "")),
		"two file systems, ext4 and xfs":                               capable(mountOf(single, "ext4"), mountOf(single, "xfs")),
		`the file system "ntfs"`:                                       capable(mountOf(single, "ntfs")),
		"file system nfs, and the protocol is":                         iscsi(mountOf(single, "nfs")),
		"write to a file system on iSCSI":                              iscsi(mountOf(multi, "")),
		"volume_mount_group is not supported":                          capable(groupMount()),
		`parameters["poolclas"] is not known; did you mean poolClass?`: parameters("poolclas", "x"),
		`parameters["VSCStorageClass"] is not known; did you mean VSCStorageClassName?`: parameters("VSCStorageClass", "x"),
		`parameters["zzz"] is not known`:                                                parameters("zzz", ""),
		"give one of them":                                                              parameters("poolClass", "a", "VSCStorageClassName", "b"),
		`"No Name", which is not the name of`:                                           parameters("poolClass", "No Name"),
		`is local, and neither nfs nor iscsi: volumes on the nodes`:                     parameters("protocol", "local"),
		`is "smb", and neither nfs nor iscsi`:                                           parameters("protocol", "smb"),
		"is not a JSON object":                                                          parameters("volumeOptions", "[1]"),
		"has something after its JSON object":                                           parameters("volumeOptions", "{} {}"),
		`has the field "Capacity", which Katbox`:                                        parameters("volumeOptions", `{"Capacity": 5}`),
		`has the field "x", which is no string`:                                         parameters("volumeOptions", `{"x": {}}`),
		"is longer than 4096 bytes":                                                     parameters("volumeOptions", strings.Repeat(" ", 4097)),
		"no volume can be a block device": func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities, r.Parameters = []*csi.VolumeCapability{blockOf(single)}, map[string]string{"protocol": "nfs"}
		},
		"capacity_range is negative":      func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = -1 },
		"mutable_parameters":              func(r *csi.CreateVolumeRequest) { r.MutableParameters = map[string]string{"a": "b"} },
		"neither a snapshot nor a volume": func(r *csi.CreateVolumeRequest) { r.VolumeContentSource = &csi.VolumeContentSource{} },
		"snapshot_id is missing": func(r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{}}
		},
	} {
		req := createRequest()
		change(req)
		_, err := client.CreateVolume(t.Context(), req)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want InvalidArgument with %q", err, want)
		}
	}
	for want, change := range map[codes.Code]func(*csi.CreateVolumeRequest){
		codes.OutOfRange: func(r *csi.CreateVolumeRequest) { r.CapacityRange.LimitBytes = 1 },
		codes.NotFound: func(r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
				Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: "../etc"}}}
		},
	} {
		req := createRequest()
		change(req)
		if _, err := client.CreateVolume(t.Context(), req); status.Code(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	req := createRequest()
	req.CapacityRange = &csi.CapacityRange{RequiredBytes: math.MaxInt64}
	if _, err := client.CreateVolume(t.Context(), req); status.Code(err) != codes.OutOfRange {
		t.Errorf("for the largest number of bytes: %v, want OutOfRange", err)
	}
	if len(f.asked) != 0 {
		t.Errorf("refused requests have asked for %+v", f.asked)
	}
}

func groupMount() *csi.VolumeCapability {
	c := mountOf(single, "")
	c.GetMount().VolumeMountGroup = "1000"
	return c
}

// FuzzNewVolume: no request makes the validation panic, and what it accepts keeps to the rules.
func FuzzNewVolume(f *testing.F) {
	f.Add("pvc-1", "poolClass", "fast", "ext4", int32(single), false)
	f.Add("x", "volumeOptions", `{"a": 1.5e3, "b": null}`, "nfs", int32(multi), true)
	d := driverOf(f, &fakePools{}, pools.KindArray)
	f.Fuzz(func(t *testing.T, name, key, value, fsType string, m int32, block bool) {
		c := mountOf(mode(m), fsType)
		if block {
			c = blockOf(mode(m))
		}
		v, err := d.newVolume(&csi.CreateVolumeRequest{Name: name, Parameters: map[string]string{key: value},
			VolumeCapabilities: []*csi.VolumeCapability{c}})
		if err != nil {
			return
		}
		switch {
		case v.Block && v.Protocol != pools.ISCSI:
			t.Errorf("a block volume over %q", v.Protocol)
		case v.Shared && !v.Block && v.Protocol == pools.ISCSI:
			t.Error("a shared file system on iSCSI")
		case v.Name == "" || v.Class != "" && !pools.IsID(v.Class):
			t.Errorf("name %q, class %q", v.Name, v.Class)
		}
	})
}
