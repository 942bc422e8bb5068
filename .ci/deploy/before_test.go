package deploy

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/yaml"
)

// before is the chart of v0.1.0, as it was before values got the names that other charts have.
const before = "testdata/before/katbox-0.1.0.tgz"

// valuesOfBefore are files that the chart of before takes.
var valuesOfBefore = []string{
	"testdata/accepted/defaults.yaml", "testdata/accepted/least.yaml", "testdata/accepted/everything.yaml",
	"testdata/accepted/gateway.yaml", "testdata/accepted/gateway-everything.yaml",
	"testdata/accepted/pools.yaml", "testdata/accepted/pools-everything.yaml", "testdata/accepted/pools-local.yaml",
	"testdata/before/images.yaml", "testdata/before/pools-images.yaml",
}

// TestValuesOfBefore give the same objects, except what is better in all of them since.
func TestValuesOfBefore(t *testing.T) {
	for _, path := range valuesOfBefore {
		t.Run(filepath.Base(path), func(t *testing.T) {
			rendered, err := output("helm", "template", "katbox", before, "--namespace", namespace, "--kube-version", kubernetes, "--values", path)
			if err != nil {
				t.Fatal(err)
			}
			want := keyed(split(t, rendered))
			for _, object := range want {
				improve(t, object, readValues(t, path))
			}
			sameObjects(t, want, keyed(helm(t, "--values", path)))
		})
	}
}

// improve makes of an object of before what it is now.
func improve(t *testing.T, object *unstructured.Unstructured, values map[string]any) {
	t.Helper()
	switch {
	case object.GetKind() == "DaemonSet":
		improveDaemon(t, object, values)
	case object.GetKind() == "ValidatingAdmissionPolicy":
		variables, _, err := unstructured.NestedSlice(object.Object, "spec", "variables")
		if err != nil {
			t.Fatal(err)
		}
		// A pod may say what is archived, that its logs are not kept, and a policy that it made a volume of an emptyDir.
		for _, variable := range variables {
			variable := variable.(map[string]any)
			if variable["name"] == "unknown" {
				variable["expression"] = strings.NewReplacer("'attach'", "'archive', 'attach'", "'inodeLimit'", "'converted', 'inodeLimit'",
					"'mode'", "'logs', 'mode'").Replace(variable["expression"].(string))
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, variables, "spec", "variables"); err != nil {
			t.Fatal(err)
		}
	case object.GetKind() == "NetworkPolicy" && strings.HasSuffix(object.GetName(), "-gateway"):
		rules, _, err := unstructured.NestedSlice(object.Object, "spec", "ingress")
		if err != nil {
			t.Fatal(err)
		}
		// Replicas ask one another where the daemons come in.
		for _, rule := range rules {
			rule := rule.(map[string]any)
			from, _ := rule["from"].([]any)
			if port := rule["ports"].([]any)[0].(map[string]any)["port"]; port != "nodes" || len(from) == 0 {
				continue
			}
			daemons, _, err := unstructured.NestedStringMap(from[0].(map[string]any), "podSelector", "matchLabels")
			if err != nil {
				t.Fatal(err)
			}
			gateway := map[string]any{}
			for key, value := range daemons {
				gateway[key] = value
			}
			gateway["app.kubernetes.io/name"] = "katbox-gateway"
			rule["from"] = append(from, map[string]any{"podSelector": map[string]any{"matchLabels": gateway}})
		}
		if err := unstructured.SetNestedSlice(object.Object, rules, "spec", "ingress"); err != nil {
			t.Fatal(err)
		}
	case object.GetKind() == "CSIDriver" && strings.HasSuffix(object.GetName(), ".csi.katbox.io"):
		if err := unstructured.SetNestedField(object.Object, true, "spec", "preventPodSchedulingIfMissing"); err != nil {
			t.Fatal(err)
		}
	case object.GetKind() == "ClusterRole" && strings.HasSuffix(object.GetName(), "-controller"):
		rules, _, err := unstructured.NestedSlice(object.Object, "rules")
		if err != nil {
			t.Fatal(err)
		}
		// Whose the data of a deleted claim are it sees from the PersistentVolume.
		for _, rule := range rules {
			rule := rule.(map[string]any)
			if reflect.DeepEqual(rule["resources"], []any{"persistentvolumes"}) {
				rule["verbs"] = append(rule["verbs"].([]any), "watch")
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, rules, "rules"); err != nil {
			t.Fatal(err)
		}
	case object.GetKind() == "ClusterRole" && strings.HasSuffix(object.GetName(), "-gateway"):
		rules, _, err := unstructured.NestedSlice(object.Object, "rules")
		if err != nil {
			t.Fatal(err)
		}
		// Events on pods that failed, where it watches pods; the rule stands before that for what claims have left.
		watches := false
		for i, rule := range rules {
			resources, _, err := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
			if err != nil {
				t.Fatal(err)
			}
			verbs, _, err := unstructured.NestedStringSlice(rule.(map[string]any), "verbs")
			if err != nil {
				t.Fatal(err)
			}
			watches = watches || slices.Equal(resources, []string{"pods"}) && slices.Contains(verbs, "watch")
			if watches && slices.Equal(resources, []string{"poolvolumes"}) {
				events := map[string]any{"apiGroups": []any{""}, "resources": []any{"events"}, "verbs": []any{"create"}}
				rules = slices.Insert(rules, i, any(events))
				break
			}
		}
		// It verifies the daemons' tokens by the keys that sign them.
		rules = append(rules, map[string]any{
			"nonResourceURLs": []any{"/.well-known/openid-configuration", "/openid/v1/jwks"}, "verbs": []any{"get"},
		})
		if err := unstructured.SetNestedSlice(object.Object, rules, "rules"); err != nil {
			t.Fatal(err)
		}
	}
}

// improveDaemon makes of the DaemonSet of before what it is now.
func improveDaemon(t *testing.T, set *unstructured.Unstructured, values map[string]any) {
	t.Helper()
	fields := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if values["maxUnavailable"] == nil {
		fields(unstructured.SetNestedField(set.Object, "10%", "spec", "updateStrategy", "rollingUpdate", "maxUnavailable"))
	}
	fields(unstructured.SetNestedField(set.Object, "RuntimeDefault", "spec", "template", "spec", "securityContext", "seccompProfile", "type"))
	containers, _, err := unstructured.NestedSlice(set.Object, "spec", "template", "spec", "containers")
	fields(err)
	daemon := containers[0].(map[string]any)
	fields(unstructured.SetNestedStringSlice(daemon, []string{"ALL"}, "securityContext", "capabilities", "drop"))
	if given := values["resources"]; given == nil || reflect.DeepEqual(given, map[string]any{}) { // Helm merges them
		fields(unstructured.SetNestedField(daemon, "768Mi", "resources", "limits", "memory"))
	}
	if values["goMemLimit"] == nil {
		for _, variable := range daemon["env"].([]any) {
			if variable := variable.(map[string]any); variable["name"] == "GOMEMLIMIT" {
				variable["value"] = "576MiB"
			}
		}
	}
	fields(unstructured.SetNestedSlice(set.Object, containers, "spec", "template", "spec", "containers"))
}

// sameObjects compares all objects but what changes with the programs: alerts, dashboard, the definitions of custom
// resources, and what the admission policy validates.
func sameObjects(t *testing.T, want, got map[string]*unstructured.Unstructured) {
	t.Helper()
	for name, object := range want {
		switch {
		case got[name] == nil:
			t.Errorf("there is no %s any more", name)
		case object.GetKind() == "PrometheusRule", object.GetKind() == "CustomResourceDefinition", strings.HasSuffix(name, "-dashboard"):
		default:
			if object.GetKind() == "ValidatingAdmissionPolicy" {
				unstructured.RemoveNestedField(object.Object, "spec", "validations")
				unstructured.RemoveNestedField(got[name].Object, "spec", "validations")
			}
			if difference := diff.Diff(object.Object, got[name].Object); difference != "" {
				t.Errorf("%s differs between before (-) and now (+):\n%s", name, difference)
			}
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("there is a new %s", name)
		}
	}
}

// keyed keys objects by kind, namespace and name, without those that are there for "helm test" alone.
func keyed(objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	named := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		if o.GetAnnotations()["helm.sh/hook"] == "" {
			named[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o
		}
	}
	return named
}

func readValues(t *testing.T, path string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(content, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// TestUpgradeReusesValues: "helm upgrade --reuse-values" knows none of the defaults that are new. It has the defaults
// of before, and changes no selector, since the API server would refuse that.
func TestUpgradeReusesValues(t *testing.T) {
	for _, path := range valuesOfBefore {
		t.Run(filepath.Base(path), func(t *testing.T) {
			old, upgraded, err := upgrade(t, readValues(t, path), nil)
			if err != nil {
				t.Fatal(err)
			}
			objects := split(t, []byte(upgraded))
			acceptAll(t, objects)
			want, got := keyed(split(t, []byte(old))), keyed(objects)
			for name, object := range want {
				improve(t, object, map[string]any{"maxUnavailable": "as before", "resources": "as before", "goMemLimit": "as before"})
				// The scheduler is told by a value of now.
				unstructured.RemoveNestedField(object.Object, "spec", "preventPodSchedulingIfMissing")
				selector, _, err := unstructured.NestedMap(object.Object, "spec", "selector")
				if err != nil {
					t.Fatal(err)
				}
				now, _, err := unstructured.NestedMap(got[name].Object, "spec", "selector")
				if err != nil {
					t.Fatal(err)
				}
				if difference := diff.Diff(selector, now); difference != "" {
					t.Errorf("the selector of %s changes:\n%s", name, difference)
				}
			}
			sameObjects(t, want, got)
		})
	}
}

// TestOldAndNewNames of a value are refused if they say different things, and the error says what to do.
func TestOldAndNewNames(t *testing.T) {
	for name, test := range map[string]struct {
		old, changes map[string]any
		want         string // an error, or the driver's name
	}{
		"name":    {map[string]any{}, map[string]any{"csiDriver": map[string]any{"name": "scratch.example.com"}}, "--set driverName="},
		"renamed": {map[string]any{}, map[string]any{"driverName": "scratch.example.com"}, "scratch.example.com"},
		"same": {map[string]any{"driverName": "scratch.example.com"},
			map[string]any{"csiDriver": map[string]any{"name": "scratch.example.com"}}, "scratch.example.com"},
		"emptied": {map[string]any{"driverName": "scratch.example.com"},
			map[string]any{"driverName": "", "csiDriver": map[string]any{"name": "other.example.com"}}, "other.example.com"},
		"create":  {map[string]any{}, map[string]any{"csiDriver": map[string]any{"create": false}}, "--set createCSIDriver="},
		"created": {map[string]any{}, map[string]any{"csiDriver": map[string]any{"create": true}}, "katbox.csi.paypal.com"},
	} {
		t.Run(name, func(t *testing.T) {
			_, upgraded, err := upgrade(t, test.old, test.changes)
			if strings.HasPrefix(test.want, "--set ") {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("want it refused with %q, got %v", test.want, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := find(t, split(t, []byte(upgraded)), "CSIDriver").GetName(); got != test.want {
				t.Errorf("the driver is %s, want %s", got, test.want)
			}
		})
	}
}

// upgrade installs the chart of before with Helm's own code, upgrades it with --reuse-values and changes, and returns
// what each of the two made. There is no cluster: the releases are in memory.
func upgrade(t *testing.T, values, changes map[string]any) (installed, upgraded string, err error) {
	t.Helper()
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	capabilities := *chartutil.DefaultCapabilities
	capabilities.KubeVersion = *version
	memory := driver.NewMemory()
	memory.SetNamespace(namespace)
	config := &action.Configuration{
		Releases: storage.Init(memory), KubeClient: &kubefake.PrintingKubeClient{Out: io.Discard}, Capabilities: &capabilities,
		Log: func(string, ...any) {},
	}
	old, err := loader.Load(before)
	if err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace = "katbox", namespace
	first, err := install.Run(old, values)
	if err != nil {
		t.Fatal(err)
	}
	now, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	up := action.NewUpgrade(config)
	up.Namespace, up.ReuseValues = namespace, true
	second, err := up.Run("katbox", now, changes)
	if err != nil {
		return first.Manifest, "", err
	}
	return first.Manifest, second.Manifest, nil
}
