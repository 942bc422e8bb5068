package kubelet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

func TestPaths(t *testing.T) {
	const pods = "/var/lib/kubelet/pods"
	long := strings.Repeat("x", 254)
	for path, want := range map[string]struct {
		dir, pod, name string
		subpath        bool
	}{
		"/uid/volumes/kubernetes.io~csi/scratch/mount":               {"uid", "uid", "scratch", false},
		"/uid/volumes/kubernetes.io~csi/volume-subpaths/mount":       {"uid", "uid", "volume-subpaths", false},
		"/uid/volumes/kubernetes.io~csi/scratch/mount/":              {"uid", "uid", "scratch", false},
		"/uid/volumes/kubernetes.io~csi/scratch/mount/more":          {"uid", "", "", false},
		"/uid/volumes/kubernetes.io~csi/scratch":                     {"uid", "", "", false},
		"/uid/volumes/kubernetes.io~empty-dir/scratch/mount":         {"uid", "", "", false},
		"/uid/volumes/kubernetes.io~csi/" + long + "/mount":          {"uid", "uid", "", false},
		"/.hidden/volumes/kubernetes.io~csi/scratch/mount":           {".hidden", "", "", false},
		"/uid/volume-subpaths/scratch/work/0":                        {"uid", "", "", true},
		"/uid/volumes/kubernetes.io~csi/scratch/volume-subpaths/a/b": {"uid", "", "", false},
		"/uid":             {"uid", "", "", false},
		"":                 {},
		"/":                {},
		"/../pods2/uid":    {},
		"2/uid/volumes/xy": {},
	} {
		path = pods + path
		dir, subpath := PodOf(pods, path), IsSubpath(pods+"/", path)
		pod, name := ParseTarget(pods, path)
		if dir != want.dir || string(pod) != want.pod || name != want.name || subpath != want.subpath {
			t.Errorf("%s: directory %q, pod %q, name %q, subpath %t; want %+v", path, dir, pod, name, subpath, want)
		}
	}
	if got := PodOf(pods, "relative/path"); got != "" {
		t.Errorf("a relative path is in the pod directory %q", got)
	}
}

func TestPodsOf(t *testing.T) {
	const pods = "/pods"
	for _, tt := range []struct {
		targets string
		want    []string
	}{
		{"", []string{"uid"}},
		{"/pods/uid/x", []string{"uid"}},
		{"/pods/uid/x /pods/other/x", []string{"uid", "other"}},
		{"/pods/uid/x /elsewhere/x", nil},
	} {
		record := volume.Record{Pod: "uid"}
		for path := range strings.FieldsSeq(tt.targets) {
			record.Targets = append(record.Targets, volume.Target{Path: path})
		}
		if got := PodsOf(pods, &record); !slices.Equal(got, tt.want) {
			t.Errorf("%q: pods %q, want %q", tt.targets, got, tt.want)
		}
	}
}

// TestLeftover: a target proves nothing about its pod, its absence does.
func TestLeftover(t *testing.T) {
	const csi = "volumes/kubernetes.io~csi/"
	for name, tt := range map[string]struct {
		there   []string
		name    string
		want    bool
		unnamed bool
	}{
		"as after a publish":                {[]string{csi + "data/mount", csi + "data/vol_data.json"}, "data", false, false},
		"without the target":                {[]string{csi + "data/vol_data.json"}, "data", true, true},
		"another volume's target":           {[]string{csi + "data/vol_data.json", csi + "other/mount"}, "data", true, false},
		"no volumes":                        {[]string{"volume-subpaths/data"}, "data", true, true},
		"nothing of the volume":             {[]string{"volumes/kubernetes.io~projected/token"}, "data", false, false},
		"nothing of the volume but another": {[]string{csi + "other/vol_data.json"}, "data", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, path := range tt.there {
				if err := os.MkdirAll(filepath.Join(dir, "uid", path), 0o750); err != nil {
					t.Fatal(err)
				}
			}
			for of, want := range map[string]bool{tt.name: tt.want, "": tt.unnamed} {
				if got, err := Leftover(dir, "uid", of); err != nil || got != want {
					t.Errorf("of volume %q: %v, %v; want %v", of, got, err, want)
				}
			}
		})
	}
	pods := t.TempDir()
	if err := os.Symlink(filepath.Join(pods, "none"), filepath.Join(pods, "uid")); err != nil {
		t.Fatal(err)
	}
	if left, err := Leftover(pods, "uid", "data"); left || err != nil {
		t.Errorf("of a link that leads nowhere, as to a disk that is not there: %v, %v", left, err)
	}
	if left, err := Leftover(pods, "gone", "data"); !left || err != nil {
		t.Errorf("of a pod without a directory: %v, %v", left, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if left, err := Leftover(file, "uid", "data"); left || err == nil {
		t.Errorf("of no directory: %v, %v", left, err)
	}
}
