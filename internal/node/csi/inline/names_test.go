package inline

import (
	"reflect"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestVolumeNames: the name comes from a path of the kubelet's shape. Another orchestrator's
// path has no name, and odd names are ignored, not refused.
func TestVolumeNames(t *testing.T) {
	d := fuzzedDriver(t, "/var/lib/kubelet")
	for path, want := range map[string]string{
		"/uid/volumes/kubernetes.io~csi/scratch/mount":                          "scratch",
		"/uid/volumes/kubernetes.io~csi/mount/mount":                            "mount",
		"/uid/volumes/kubernetes.io~csi/scratch/mount/more":                     "",
		"/uid/volumes/kubernetes.io~csi/scratch":                                "",
		"/uid/volumes/kubernetes.io~csi/scratch/globalmount":                    "",
		"/uid/volumes/kubernetes.io~empty-dir/scratch/mount":                    "",
		"/uid/volume-subpaths/kubernetes.io~csi/scratch/mount":                  "",
		"/.trash/volumes/kubernetes.io~csi/scratch/mount":                       "",
		"/uid/volumes/kubernetes.io~csi/A b/mount":                              "",
		"/uid/volumes/kubernetes.io~csi/" + strings.Repeat("x", 254) + "/mount": "",
		"/anything": "",
	} {
		req := publishRequest()
		req.TargetPath = podsDir + path
		p, err := d.publication(req)
		if err != nil || p.VolumeName != want {
			t.Errorf("%s: volume %q, %v, want %q", path, p.VolumeName, err, want)
		}
	}
	req := publishRequest()
	for _, key := range []string{kubelet.ContextNamespace, kubelet.ContextPodName, kubelet.ContextAccount} {
		req.VolumeContext[key] = "two\nlines"
	}
	p, err := d.publication(req)
	if err != nil || p.Namespace != "" || p.PodName != "" || p.ServiceAccount != "" {
		t.Errorf("odd names became %+v, %v, want none", p, err)
	}
}

// TestLogNamesTheVolume: also of calls without a volume context, and of bad ones.
func TestLogNamesTheVolume(t *testing.T) {
	d := fuzzedDriver(t, "/var/lib/kubelet")
	good := publishRequest()
	bad := publishRequest()
	bad.TargetPath, bad.VolumeContext[kubelet.ContextPodName] = "/etc", "two\nlines"
	for name, tt := range map[string]struct {
		req  any
		want volume.Record
	}{
		"publish":   {good, volume.Record{ID: "csi-1", Pod: "uid", Namespace: "default", PodName: "batch", VolumeName: "scratch"}},
		"bad names": {bad, volume.Record{ID: "csi-1", Namespace: "default"}},
		"unpublish": {&csi.NodeUnpublishVolumeRequest{VolumeId: "csi-1", TargetPath: good.TargetPath},
			volume.Record{ID: "csi-1", Pod: "uid", VolumeName: "scratch"}},
		"stats": {&csi.NodeGetVolumeStatsRequest{VolumeId: "csi-1", VolumePath: good.TargetPath},
			volume.Record{ID: "csi-1", Pod: "uid", VolumeName: "scratch"}},
		"no volume":  {&csi.NodeGetInfoRequest{}, volume.Record{}},
		"no request": {(*csi.NodePublishVolumeRequest)(nil), volume.Record{}},
	} {
		if got := d.named(tt.req); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
