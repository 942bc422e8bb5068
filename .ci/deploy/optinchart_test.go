package deploy

import (
	"maps"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/optin"
)

// optInOf are the objects that convert volumes.
func optInOf(objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	of := byName(objects)
	for name, o := range of {
		if !strings.HasPrefix(o.GetKind(), "MutatingAdmissionPolicy") && !strings.HasSuffix(o.GetName(), "-scratch") {
			delete(of, name)
		}
	}
	return of
}

// TestOptInByVersion: the chart has what the component for that version of Kubernetes has, and says which API is missing
// where neither is.
func TestOptInByVersion(t *testing.T) {
	const beta = "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"
	for _, tt := range []struct{ version, component string }{{"1.36.0", "opt-in"}, {"1.35.2", "opt-in-v1beta1"}} {
		args := []string{"--set", "optIn.enabled=true", "--kube-version", tt.version, "--api-versions", beta}
		got, want := optInOf(helm(t, args...)), map[string]*unstructured.Unstructured{}
		for _, file := range []string{"policy.yaml", "params.yaml"} {
			content, err := os.ReadFile(manifests + "/components/" + tt.component + "/" + file)
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(want, byName(split(t, content)))
		}
		if len(got) != len(want) || len(want) != 4 {
			t.Errorf("%s: %d objects, and the component has %d", tt.version, len(got), len(want))
		}
		for name, object := range want {
			if got[name] == nil {
				t.Errorf("%s: there is no %s", tt.version, name)
			} else if difference := diff.Diff(object.Object, got[name].Object); difference != "" {
				t.Errorf("%s: %s differs between component (-) and chart (+):\n%s", tt.version, name, difference)
			}
			acceptAll(t, []*unstructured.Unstructured{got[name]})
		}
	}
	_, err := template("--set", "optIn.enabled=true", "--kube-version", "1.33.0")
	if err == nil || !strings.Contains(err.Error(), "this is Kubernetes v1.33.0, which has no MutatingAdmissionPolicy") {
		t.Errorf("1.33: %v", err)
	}
}

// TestOptInOfOtherNames: a release with another name, driver and namespace has a policy of its own, with the presets of its
// values beside those that are shipped.
func TestOptInOfOtherNames(t *testing.T) {
	objects := helm(t, "--values", "testdata/accepted/opt-in.yaml", "--namespace", "storage")
	policy := one[*admissionv1.MutatingAdmissionPolicy](t, objects)
	if named := policy.Spec.MatchConstraints.NamespaceSelector.MatchExpressions[0]; strings.Join(named.Values, " ") !=
		"kube-node-lease kube-public kube-system storage" {
		t.Errorf("pods in these namespaces are left alone: %v", named.Values)
	}
	text := asYAML(t, policy)
	if strings.Contains(text, api.DriverName) || !strings.Contains(text, "scratch.csi.example.com") {
		t.Errorf("another driver:\n%s", text)
	}
	for _, o := range objects {
		if o.GetKind() != "MutatingAdmissionPolicyBinding" {
			continue
		}
		ref, _, err := unstructured.NestedMap(o.Object, "spec", "paramRef")
		policyName, _, _ := unstructured.NestedString(o.Object, "spec", "policyName")
		if err != nil || ref["name"] != "scratch-scratch" || ref["namespace"] != "storage" || policyName != policy.Name {
			t.Errorf("%s is of %q with the parameters %v (%v)", o.GetName(), policyName, ref, err)
		}
	}
	for _, o := range optInOf(objects) {
		if o.GetKind() != "ConfigMap" {
			continue
		}
		data := one[*corev1.ConfigMap](t, []*unstructured.Unstructured{o}).Data
		if data[optin.AffinityKey] != optin.AffinityNone || data[optin.TmpKey] != "true" || data["preset.ray"] == "" ||
			data["preset.nextflow"] != "label nextflow.io/app\nkeep nf-*\nleave nf-secrets\n" || o.GetNamespace() != "storage" {
			t.Errorf("the parameters are %v", data)
		}
		return
	}
	t.Error("there is no ConfigMap")
}
