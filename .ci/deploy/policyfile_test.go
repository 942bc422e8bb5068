package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/katbox/katbox/internal/node/policy"
)

// TestPolicyFile: the daemon can read the policy file of the component, which changes nothing, and that which
// a user's kustomization puts in its place.
func TestPolicyFile(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(manifests, "components/policy-file/configmap.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	bounds := policy.Bounds{Lifespan: time.Hour, MaxLifespan: time.Hour}
	for _, c := range []struct {
		name    string
		objects []*unstructured.Unstructured
		want    time.Duration
	}{
		{"the component's own", split(t, content), time.Hour},
		{"a user's", kustomize(t, withFile), 72 * time.Hour},
	} {
		object := byName(c.objects)["ConfigMap katbox/katbox-policy"]
		if object == nil {
			t.Fatalf("%s: there is no ConfigMap katbox-policy", c.name)
		}
		text, _, err := unstructured.NestedString(object.Object, "data", "policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Parse(bounds, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := p.Bounds("team-a").Lifespan; got != c.want {
			t.Errorf("%s: the volumes of team-a have the lifespan %s, want %s", c.name, got, c.want)
		}
	}
}

// TestPolicyFileIsMounted where the daemon reads it: the whole directory, because a file that is mounted by
// itself never changes.
func TestPolicyFileIsMounted(t *testing.T) {
	pod := daemonSet(t, withFile).Spec.Template.Spec
	daemon := pod.Containers[0]
	if flagsOf(daemon)["--policy-file"] != "/etc/katbox/policy.yaml" {
		t.Errorf("the arguments are %q", daemon.Args)
	}
	if !slices.ContainsFunc(daemon.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == "policy" && m.MountPath == "/etc/katbox" && m.SubPath == "" && m.ReadOnly
	}) {
		t.Errorf("the mounts are %+v", daemon.VolumeMounts)
	}
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.Name == "policy" && v.ConfigMap != nil && v.ConfigMap.Name == "katbox-policy"
	}) {
		t.Errorf("the volumes are %+v", pod.Volumes)
	}
}
