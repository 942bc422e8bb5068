package inline

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/policy"
)

func fuzzedDriver(t testing.TB, kubeletDir string) *Driver {
	t.Helper()
	d, err := New(Config{Name: "katbox.csi.paypal.com", NodeID: "node-1", KubeletDir: kubeletDir, Volumes: &fakeVolumes{},
		Terms: testTerms(t), Metrics: metrics.New("", "")})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// FuzzPublication looks for a publish request that is accepted with another meaning. Flags
// are separated by commas; access 0 is a mount, 1 a block device, 2 neither, 3 no capability
// at all.
func FuzzPublication(f *testing.F) {
	const target = podsDir + "/uid/volumes/kubernetes.io~csi/scratch/mount"
	for mode := range int32(len(csi.VolumeCapability_AccessMode_Mode_name) + 1) {
		f.Add("csi-1", target, "uid", "true", "batch", "nodev,ro,noexec,nodev", "", byte(0), mode, mode%2 == 0)
	}
	f.Add("csi-1", target, "uid", "true", "", "", "", byte(1), int32(1), false)
	f.Add("csi-1", target, "uid", "true", "", "", "1000", byte(0), int32(1), false)
	f.Fuzz(func(t *testing.T, id, target, pod, ephemeral, name, flags, group string, access byte, mode int32, readonly bool) {
		d := fuzzedDriver(t, "/var/lib/kubelet")
		req := &csi.NodePublishVolumeRequest{
			VolumeId: id, TargetPath: target, Readonly: readonly,
			VolumeCapability: &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_Mode(mode)}},
			VolumeContext: map[string]string{
				kubelet.ContextEphemeral: ephemeral, kubelet.ContextPodUID: pod, kubelet.ContextPodName: name,
				kubelet.ContextNamespace: name + "-space",
				kubelet.ContextAccount:   name + "-account", name: name,
			},
		}
		asked := strings.FieldsFunc(flags, func(r rune) bool { return r == ',' })
		switch access {
		case 0:
			req.VolumeCapability.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: asked,
				VolumeMountGroup: group}}
		case 1:
			req.VolumeCapability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		case 3:
			req.VolumeCapability = nil
		}
		p, err := d.publication(req)
		if err != nil {
			checkRefusal(t, err)
			if p.ID != "" || p.Target.Path != "" {
				t.Errorf("refused, but also returned: %+v", p)
			}
			return
		}
		if access != 0 || group != "" || req.VolumeContext[kubelet.ContextEphemeral] != "true" {
			t.Errorf("accepted: %v", req)
		}
		checkName(t, string(p.ID), id)
		checkName(t, string(p.Pod), req.VolumeContext[kubelet.ContextPodUID])
		checkTarget(t, d, target, p.Target.Path)
		checkObjectName(t, p.PodName, req.VolumeContext[kubelet.ContextPodName])
		checkObjectName(t, p.Namespace, req.VolumeContext[kubelet.ContextNamespace])
		checkObjectName(t, p.ServiceAccount, req.VolumeContext[kubelet.ContextAccount])
		if p.VolumeName != "" {
			checkObjectName(t, p.VolumeName, filepath.Base(filepath.Dir(p.Target.Path)))
		}
		checkMode(t, p.Target, req, asked)
		if p.Refused != nil {
			checkRefusal(t, p.Refused)
		}
		if _, known := slices.BinarySearch(policy.Keys(), name); p.Refused == nil && !known && !strings.HasPrefix(name, policy.KubeletPrefix) {
			t.Errorf("the attribute %q is accepted", name)
		}
	})
}

// checkMode compares the mode of the mount with the request.
func checkMode(t *testing.T, got volume.Target, req *csi.NodePublishVolumeRequest, asked []string) {
	t.Helper()
	mode := req.GetVolumeCapability().GetAccessMode().GetMode()
	if !slices.Contains([]csi.VolumeCapability_AccessMode_Mode{
		csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER,
	}, mode) {
		t.Errorf("access mode %v was accepted", mode)
	}
	readOnly := req.GetReadonly() || mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY || slices.Contains(asked, "ro")
	multiWriter := mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	if got.ReadOnly != readOnly || got.MultiWriter != multiWriter || got.Leaving {
		t.Errorf("%+v, want read only %t and multi writer %t", got, readOnly, multiWriter)
	}
	// The record keeps them sorted and once each, so that repeats compare equal.
	if !slices.IsSorted(got.Flags) || len(slices.Compact(slices.Clone(got.Flags))) != len(got.Flags) {
		t.Errorf("flags %q are not a sorted set", got.Flags)
	}
	for _, flag := range append(asked, got.Flags...) {
		kept := flag != "ro" && flag != "rw"
		if !mount.KnownFlag(flag) || slices.Contains(got.Flags, flag) != kept {
			t.Errorf("of the flags %q, %q are kept", asked, got.Flags)
		}
	}
}

// FuzzVolumeAndPath looks for an unpublish or a request for stats that is accepted though its
// path leads out of the kubelet's pods directory.
func FuzzVolumeAndPath(f *testing.F) {
	f.Add("/var/lib/kubelet", "csi-1", podsDir+"/uid/volumes/kubernetes.io~csi/scratch/mount")
	f.Add("/", "csi-1", "/pods/a")
	f.Add("/var/../kubelet/", "csi-1", "/kubelet/pods/a/")
	f.Fuzz(func(t *testing.T, kubeletDir, id, path string) {
		if strings.ContainsFunc(kubeletDir, unicode.IsControl) || !utf8.ValidString(kubeletDir) || !filepath.IsAbs(kubeletDir) {
			return // it is in errors as it is, and not the caller's choice; a relative one is refused at the start
		}
		d := fuzzedDriver(t, kubeletDir)
		gotID, target, err := d.unpublication(&csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: path})
		if err != nil {
			checkRefusal(t, err)
		} else {
			checkName(t, string(gotID), id)
			checkTarget(t, d, path, target)
			if again, err := d.target(target); again != target || err != nil {
				t.Errorf("target %q is %q, %v the second time", target, again, err)
			}
		}
		gotID, shown, err := statsOf(&csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: path})
		if err != nil {
			checkRefusal(t, err)
			return
		}
		checkName(t, string(gotID), id)
		// Published paths are clean, so another path finds none.
		if shown != filepath.Clean(path) {
			t.Errorf("stats of %q are asked for at %q", path, shown)
		}
	})
}

// checkRefusal fails for an error that does not name a field, or that could forge a log
// line.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var invalid *volume.InvalidError
	if !errors.Is(err, volume.ErrInvalid) || !errors.As(err, &invalid) {
		t.Fatalf("%v is not an invalid request", err)
	}
	known := []string{"volume_id", "target_path", "volume_path", "volume_capability", "volume_context", "volumeAttributes"}
	if !slices.ContainsFunc(known, func(field string) bool { return strings.HasPrefix(invalid.Field, field) }) {
		t.Errorf("%q is no field of the request", invalid.Field)
	}
	if text := err.Error(); strings.ContainsFunc(text, unicode.IsControl) || !utf8.ValidString(text) {
		t.Errorf("the error is not one plain line: %q", text)
	}
}

// checkName fails for a name that is not a plain path element, or not the one that was sent.
func checkName(t *testing.T, got, sent string) {
	t.Helper()
	if got != sent || filepath.Base(got) != got || got[0] == '.' || strings.Contains(got, "\x00") || len(got) > 255 {
		t.Errorf("name %q of %q", got, sent)
	}
}

// checkObjectName fails for a name that differs from the one that was sent, or is odd.
func checkObjectName(t *testing.T, got, sent string) {
	t.Helper()
	want := sent
	if len(sent) > 253 ||
		strings.ContainsFunc(sent, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-.", r) }) {
		want = ""
	}
	if got != want {
		t.Errorf("name %q of %q, want %q", got, sent, want)
	}
}

// checkTarget fails for a target path that is not below the pods directory.
func checkTarget(t *testing.T, d *Driver, sent, got string) {
	t.Helper()
	rel, err := filepath.Rel(d.podsDir, got)
	if err != nil || !filepath.IsLocal(rel) || rel == "." || got != filepath.Clean(got) || !filepath.IsAbs(got) {
		t.Errorf("target path %q became %q, which is not below %s", sent, got, d.podsDir)
	}
	if slices.Contains(strings.Split(sent, "/"), "..") || strings.Contains(got, "\x00") || len(got) > 4095 {
		t.Errorf("target path %q was accepted", sent)
	}
}
