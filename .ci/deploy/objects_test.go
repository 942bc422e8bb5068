package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	scheme "k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/storage"
	storagevalidation "k8s.io/kubernetes/pkg/apis/storage/validation"
)

// overlays are the directories with a kustomization.
var overlays = []string{"base", "overlays/sidecars", "overlays/data-disk", "overlays/with-gateway", "overlays/with-pools",
	"overlays/with-local"}

const (
	// definitions is what is there before the controller of the pools, and stays after it.
	definitions = "../crds"
	// withPolicy is a kustomization that has the component network-policy.
	withPolicy = "../../.ci/deploy/testdata/network-policy"
	// withAll is one that has all components.
	withAll = "../../.ci/deploy/testdata/gateway"
	// withHostNetwork is one that has the component gateway-host-network.
	withHostNetwork = "../../.ci/deploy/testdata/gateway-host-network"
	// withPoolsAndGateway is one that has the component pools beside others.
	withPoolsAndGateway = "../../.ci/deploy/testdata/pools-gateway"
	// withPrevention is one that has the component prevent-scheduling beside pools.
	withPrevention = "../../.ci/deploy/testdata/prevent-scheduling"
	// withAdmission is one that has the component admission-policy.
	withAdmission = "../../.ci/deploy/testdata/admission-policy"
	// withOptIn is one that has the component opt-in.
	withOptIn = "../../.ci/deploy/testdata/with-opt-in"
	// withFile is one that has the component policy-file, with a policy of its own.
	withFile = "../../.ci/deploy/testdata/policy-file"
)

// TestEveryObjectIsAccepted: by the API server's own decoding and validation.
func TestEveryObjectIsAccepted(t *testing.T) {
	for _, dir := range append(slices.Clip(overlays), definitions, withPolicy, withAll, withHostNetwork, withPoolsAndGateway,
		withPrevention, withAdmission, withOptIn, withFile, withLogs, withArchive, withHolds) {
		t.Run("kustomize/"+dir, func(t *testing.T) { acceptAll(t, kustomize(t, dir)) })
	}
	for _, path := range append(files(t, examples+"/*.yaml"), files(t, examples+"/admission/*.yaml")...) {
		t.Run("examples/"+filepath.Base(path), func(t *testing.T) {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			acceptAll(t, split(t, content))
		})
	}
	for _, path := range files(t, "testdata/accepted/*.yaml") {
		t.Run("helm/"+filepath.Base(path), func(t *testing.T) { acceptAll(t, helm(t, "--values", path)) })
	}
}

func acceptAll(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		// Those of the Prometheus operator and of cert-manager are not the API server's.
		if group := object.GroupVersionKind().Group; group == "monitoring.coreos.com" || group == "cert-manager.io" {
			continue
		}
		if _, err := accept(object); err != nil {
			t.Error(err)
		}
	}
}

// TestKustomizationsAreListed, so that none goes unchecked.
func TestKustomizationsAreListed(t *testing.T) {
	listed := map[string]bool{}
	for _, dir := range append(slices.Clip(overlays), "components/network-policy", "components/gateway", "components/gateway-host-network",
		"components/pools", "components/local", "components/prevent-scheduling", "components/admission-policy", "components/opt-in",
		"components/opt-in-v1beta1", "components/policy-file", "components/logs", "components/archive", "components/hold-nodes") {
		listed[filepath.Join(manifests, dir, "kustomization.yaml")] = true
	}
	for _, path := range append(files(t, manifests+"/*/kustomization.yaml"), files(t, manifests+"/*/*/kustomization.yaml")...) {
		if !listed[path] {
			t.Errorf("%s is in no test", path)
		}
		delete(listed, path)
	}
	for path := range listed {
		t.Errorf("there is no %s", path)
	}
}

// TestMistakesAreFound: the check of all objects is one that can fail.
func TestMistakesAreFound(t *testing.T) {
	set := func(value any, fields ...string) func(*unstructured.Unstructured) error {
		return func(o *unstructured.Unstructured) error {
			return unstructured.SetNestedField(o.Object, value, fields...)
		}
	}
	container := func(change func(map[string]any)) func(*unstructured.Unstructured) error {
		return func(o *unstructured.Unstructured) error {
			all, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			if err != nil {
				return err
			}
			change(all[0].(map[string]any))
			return unstructured.SetNestedSlice(o.Object, all, "spec", "template", "spec", "containers")
		}
	}
	for name, test := range map[string]struct {
		kind   string
		change func(*unstructured.Unstructured) error
		want   string
	}{
		"unknown field":  {"DaemonSet", set("x", "spec", "template", "spec", "hostNetwrk"), "hostNetwrk"},
		"wrong kind":     {"DaemonSet", set("yes", "spec", "template", "spec", "automountServiceAccountToken"), "bool"},
		"selector":       {"DaemonSet", set("other", "spec", "selector", "matchLabels", "app.kubernetes.io/name"), "selector"},
		"restart policy": {"DaemonSet", set("Never", "spec", "template", "spec", "restartPolicy"), "restartPolicy"},
		"unmounted volume": {"DaemonSet", container(func(c map[string]any) { c["volumeMounts"].([]any)[0].(map[string]any)["name"] = "none" }),
			"volumeMounts[0].name"},
		"bidirectional": {"DaemonSet", container(func(c map[string]any) {
			delete(c["securityContext"].(map[string]any), "privileged")
		}), "Bidirectional"},
		"quantity": {"DaemonSet", container(func(c map[string]any) {
			c["resources"].(map[string]any)["requests"].(map[string]any)["memory"] = "64MB!"
		}), "quantities"},
		"lifecycle mode":     {"CSIDriver", set([]any{"Eternal"}, "spec", "volumeLifecycleModes"), "volumeLifecycleModes"},
		"namespace's labels": {"Namespace", set("not a label", "metadata", "labels", "a"), "metadata.labels"},
		"service's port":     {"Service", set([]any{map[string]any{"port": int64(70000)}}, "spec", "ports"), "spec.ports[0].port"},
		"API's priority":     {"APIService", set(int64(0), "spec", "versionPriority"), "versionPriority"},
		"API's name":         {"APIService", set("v1", "spec", "version"), "metadata.name"},
		"replicas":           {"Deployment", set(int64(-1), "spec", "replicas"), "spec.replicas"},
		"rule":               {"ClusterRole", set([]any{map[string]any{"resources": []any{"pods"}}}, "rules"), "rules[0].verbs"},
		"budget":             {"PodDisruptionBudget", set("1x", "spec", "maxUnavailable"), "spec.maxUnavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			object := find(t, kustomize(t, "overlays/with-gateway"), test.kind)
			if err := test.change(object); err != nil {
				t.Fatal(err)
			}
			if _, err := accept(object); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want an error about %s, got %v", test.want, err)
			}
		})
	}
}

// TestArchivedDriverObjectIsUpdated: the CSIDriver object of the archived Katbox,
// for Kubernetes 1.18 without and for 1.20 with fsGroupPolicy, may be replaced by
// ours in place.
func TestArchivedDriverObjectIsUpdated(t *testing.T) {
	internal := func(o *unstructured.Unstructured) *storage.CSIDriver {
		versioned, err := accept(o)
		if err != nil {
			t.Fatal(err)
		}
		driver := &storage.CSIDriver{}
		if err := scheme.Scheme.Convert(versioned, driver, nil); err != nil {
			t.Fatal(err)
		}
		driver.ResourceVersion = "1"
		return driver
	}
	ours := find(t, kustomize(t, "base"), "CSIDriver")
	for _, policy := range []string{"", "ReadWriteOnceWithFSType", "File"} {
		archived := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
			"metadata": map[string]any{"name": "katbox.csi.paypal.com"},
			"spec":     map[string]any{"volumeLifecycleModes": []any{"Ephemeral"}, "podInfoOnMount": true, "attachRequired": false},
		}}
		if policy != "" {
			if err := unstructured.SetNestedField(archived.Object, policy, "spec", "fsGroupPolicy"); err != nil {
				t.Fatal(err)
			}
		}
		if refused := storagevalidation.ValidateCSIDriverUpdate(internal(ours), internal(archived)); len(refused) > 0 {
			t.Errorf("with the policy %q: %v", policy, refused.ToAggregate())
		}
	}
}

func find(t *testing.T, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind {
			return object
		}
	}
	t.Fatalf("there is no %s", kind)
	return nil
}
