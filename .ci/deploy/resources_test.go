package deploy

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	scheme "k8s.io/kubernetes/pkg/api/legacyscheme"
)

func init() { apiextensionsinstall.Install(scheme.Scheme) }

// crds is where the definitions of the custom resources are.
const crds = "../../deploy/crds"

// TestCustomResourcesAreGenerated: what is in deploy is what the types say.
func TestCustomResourcesAreGenerated(t *testing.T) {
	dir := t.TempDir()
	generate := exec.Command("bin/controller-gen", "crd:crdVersions=v1", "paths=./internal/model/v1alpha1", "output:crd:dir="+dir)
	generate.Dir = "../.."
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	made := files(t, dir+"/*.yaml")
	for _, place := range []string{crds, chart + "/files/crds"} {
		if n := len(files(t, place+"/pools.katbox.io_*.yaml")); n != len(made) {
			t.Errorf("%s has %d files, want %d: run make generate", place, n, len(made))
		}
		for _, path := range made {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(place, filepath.Base(path)))
			if err != nil || string(got) != string(want) {
				t.Errorf("%s in %s is not what the types say (%v): run make generate", filepath.Base(path), place, err)
			}
		}
	}
}

// resourceKind is a kind of custom resource, as the API server knows it.
type resourceKind struct {
	schema    *structural.Structural
	validator validation.SchemaValidator
	rules     *cel.Validator
}

// resourceKinds reads the definitions.
func resourceKinds(t *testing.T) map[string]*resourceKind {
	t.Helper()
	kinds := map[string]*resourceKind{}
	for _, path := range files(t, crds+"/pools.katbox.io_*.yaml") {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := accept(split(t, content)[0])
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensions.CustomResourceDefinition
		if err := scheme.Scheme.Convert(accepted, &definition, nil); err != nil {
			t.Fatal(err)
		}
		props := definition.Spec.Validation
		if props == nil {
			props = definition.Spec.Versions[0].Schema
		}
		k := &resourceKind{}
		if k.schema, err = structural.NewStructural(props.OpenAPIV3Schema); err != nil {
			t.Fatal(err)
		}
		if k.validator, _, err = validation.NewSchemaValidator(props.OpenAPIV3Schema); err != nil {
			t.Fatal(err)
		}
		k.rules = cel.NewValidator(k.schema, true, celconfig.PerCallLimit)
		kinds[definition.Spec.Names.Kind] = k
	}
	return kinds
}

// accept does what the API server does with an object of the kind: it knows all fields, fills in
// defaults and validates. old is nil for a new object.
func (k *resourceKind) accept(t *testing.T, object, old map[string]any) error {
	t.Helper()
	unknown := pruning.PruneWithOptions(runtime.DeepCopyJSON(object), k.schema, true,
		structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return fmt.Errorf("unknown fields: %s", strings.Join(unknown, ", "))
	}
	defaulting.Default(object, k.schema)
	var before any
	problems := validation.ValidateCustomResource(nil, object, k.validator)
	if old != nil {
		defaulting.Default(old, k.schema)
		before = old
		problems = validation.ValidateCustomResourceUpdate(nil, object, old, k.validator)
	}
	more, _ := k.rules.Validate(t.Context(), field.NewPath(""), k.schema, object, before, celconfig.RuntimeCELCostBudget)
	return append(problems, more...).ToAggregate()
}

// resources are one valid object of each kind.
const resources = `
PoolClass: {spec: {allocator: Even, default: true, protocol: iscsi}}
Pool:
  spec:
    className: gold
    overcommit: "2.5"
    capacityThresholds: {alert: "0.3"}
    vpsa: {endpoint: "https://vsa-00000001.example.com", credentialsSecretRef: {name: vpsa}, pool: pool-00000001}
PoolVolume:
  spec: {className: gold, poolName: a, size: 10Gi, volumeMode: Filesystem, protocol: nfs, requestName: asked, source: {snapshot: s},
    fsType: ext4, claimRef: {namespace: ns, name: data}}
PoolSnapshot: {spec: {volumeName: v, poolName: a, requestName: asked}}
PoolAttachment: {spec: {volumeName: v, nodeName: node-1, poolName: a, protocol: nfs}}
PoolNode: {spec: {addresses: [10.0.0.1], iqn: "iqn.2026-11.io.katbox:abc:n"}}
`

// TestRulesOfResources changes one field of a valid object, when it is made or later.
func TestRulesOfResources(t *testing.T) {
	kinds := resourceKinds(t)
	read := func() (all map[string]map[string]any) {
		if err := yaml.Unmarshal([]byte(resources), &all); err != nil {
			t.Fatal(err)
		}
		for kind, object := range all {
			object["apiVersion"], object["kind"] = "pools.katbox.io/v1alpha1", kind
			object["metadata"] = map[string]any{"name": "x"}
		}
		return all
	}
	if got, want := slices.Sorted(maps.Keys(read())), slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Fatalf("the test knows %q, there are %q", got, want)
	}
	for kind, object := range read() {
		if err := kinds[kind].accept(t, object, nil); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if err := kinds[kind].accept(t, object, read()[kind]); err != nil {
			t.Errorf("%s, written again: %v", kind, err)
		}
	}
	const either, never, new, update = "", "never", "new", "update"
	for _, tt := range []struct {
		kind, when string // when it is refused
		field      string
		value      any // nil: it is removed
		want       string
	}{
		{"Pool", either, "spec.className", nil, "className"},
		{"Pool", never, "spec.className", "silver", ""},
		{"Pool", never, "spec.vpsa.endpoint", "http://10.0.0.1:8080", ""},
		{"Pool", either, "spec.vpsa.endpoint", "10.0.0.1", "endpoint"},
		{"Pool", either, "spec.vpsa.endpoint", "https://user@host", "endpoint"},
		{"Pool", update, "spec.vpsa.pool", "pool-00000002", "the array's pool cannot change"},
		{"Pool", update, "spec.vpsa.pool", nil, "the array's pool cannot change"},
		{"Pool", either, "spec.vpsa", nil, "vpsa"},
		{"Pool", either, "spec.vpsa.credentialsSecretRef.name", "", "name"},
		{"Pool", either, "spec.vpsa.token", "secret", "unknown"},
		{"Pool", either, "spec.overcommit", "lots", "overcommit"},
		{"Pool", never, "spec.overcommit", nil, ""},
		{"Pool", either, "spec.capacityThresholds.alert", "0.05", "at most alert"},
		{"Pool", either, "spec.capacityThresholds.emergency", "0.15", "emergency has to be at most protected"},
		{"Pool", either, "spec.capacityThresholds.emergency", "1.5", "emergency"},
		{"Pool", never, "spec.capacityThresholds.protected", "0.3", ""},
		{"Pool", never, "spec.vpsa.insecureSkipVerify", true, ""},
		{"Pool", never, "spec.vpsa.caBundleSecretRef", map[string]any{"name": "ca"}, ""},
		{"PoolClass", either, "spec.allocator", "Random", "allocator"},
		{"PoolClass", either, "spec.protocol", "smb", "protocol"},
		{"PoolClass", never, "spec.default", false, ""},
		{"PoolVolume", update, "spec.className", "silver", "the class cannot change"},
		{"PoolVolume", update, "spec.poolName", "b", "the pool cannot change"},
		{"PoolVolume", either, "spec.poolName", "", "poolName"},
		{"PoolVolume", update, "spec.protocol", "iscsi", "the protocol cannot change"},
		{"PoolVolume", either, "spec.volumeMode", "Block", "has the protocol iscsi"},
		{"PoolVolume", update, "spec.source.snapshot", "other", "the source cannot change"},
		{"PoolVolume", update, "spec.source", nil, "the source cannot change"},
		{"PoolVolume", either, "spec.source.volume", "v", "a snapshot or a volume"},
		{"PoolVolume", either, "spec.source.snapshot", nil, "a snapshot or a volume"},
		{"PoolVolume", never, "spec.requestName", "other", ""}, // as when another claim gets the data back
		{"PoolVolume", never, "spec.lifespan", "24h", ""},
		{"PoolVolume", never, "spec.lifespan", "7d", ""},
		{"PoolVolume", never, "spec.lifespan", "0s", ""},
		{"PoolVolume", either, "spec.lifespan", "soon", "has to be a duration of less than 100y"},
		{"PoolVolume", either, "spec.lifespan", "-1h", "has to be a duration of less than 100y"},
		{"PoolClass", never, "spec.lifespan", "1d12h", ""},
		{"PoolClass", either, "spec.lifespan", "99999999h", "spec.lifespan"},
		{"Pool", never, "spec.vpsa.requestTimeout", "1m30s", ""},
		{"Pool", either, "spec.vpsa.requestTimeout", "", "has to be a duration of less than 100y"},
		{"PoolVolume", update, "spec.fsType", "xfs", "the file system cannot change"},
		{"PoolVolume", update, "spec.fsType", nil, "the file system cannot change"},
		{"PoolVolume", never, "spec.claimRef.name", "other", ""}, // as when an administrator gives it to another namespace
		{"PoolVolume", never, "spec.size", "20Gi", ""},
		{"PoolVolume", never, "spec.size", "5Gi", ""}, // as after a growth that the array has refused
		{"PoolVolume", either, "spec.size", "much", "size"},
		{"PoolVolume", never, "spec.management", "External", ""},
		{"PoolSnapshot", update, "spec.volumeName", "other", "the volume cannot change"},
		{"PoolSnapshot", update, "spec.poolName", "b", "the pool cannot change"},
		{"PoolSnapshot", update, "spec.requestName", nil, "the name of the request cannot change"},
		{"PoolAttachment", update, "spec.nodeName", "other", "cannot become another one"},
		{"PoolAttachment", update, "spec.readOnly", true, "cannot become another one"},
		{"PoolAttachment", either, "spec.protocol", "smb", "protocol"},
		{"PoolAttachment", never, "status.state", "Ready", ""},
		{"PoolAttachment", either, "status.iscsiStatus", "Broken", "iscsiStatus"},
		{"PoolNode", either, "spec.addresses", []any{}, "addresses"},
		{"PoolNode", either, "spec.iqn", "mine", "iqn"},
		{"PoolNode", never, "spec.iqn", nil, ""},
	} {
		t.Run(tt.kind+" "+tt.field+fmt.Sprint(" ", tt.value), func(t *testing.T) {
			for _, when := range []string{new, update} {
				object := read()[tt.kind]
				path := strings.Split(tt.field, ".")
				if tt.value == nil {
					unstructured.RemoveNestedField(object, path...)
				} else if err := unstructured.SetNestedField(object, tt.value, path...); err != nil {
					t.Fatal(err)
				}
				var old map[string]any
				if when == update {
					old = read()[tt.kind]
				}
				err := kinds[tt.kind].accept(t, object, old)
				refused := tt.when == either || tt.when == when
				if (err != nil) != refused || refused && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: %v, want it refused: %t, with %q", when, err, refused, tt.want)
				}
			}
		})
	}
}

// TestNoCAWithoutCheck: a bundle beside a certificate that is not checked is a mistake.
func TestNoCAWithoutCheck(t *testing.T) {
	var pool map[string]any
	content := `{spec: {className: c, vpsa: {endpoint: "https://h", credentialsSecretRef: {name: s},
		caBundleSecretRef: {name: ca}, insecureSkipVerify: true}}}`
	if err := yaml.Unmarshal([]byte(content), &pool); err != nil {
		t.Fatal(err)
	}
	if err := resourceKinds(t)["Pool"].accept(t, pool, nil); err == nil || !strings.Contains(err.Error(), "says nothing") {
		t.Errorf("it is refused with %v", err)
	}
}

// TestDefaultsOfResources are filled in where a person says nothing.
func TestDefaultsOfResources(t *testing.T) {
	kinds := resourceKinds(t)
	pool := map[string]any{"apiVersion": "pools.katbox.io/v1alpha1", "kind": "Pool", "metadata": map[string]any{"name": "x"},
		"spec": map[string]any{"className": "gold", "capacityThresholds": map[string]any{},
			"vpsa": map[string]any{"endpoint": "https://host", "credentialsSecretRef": map[string]any{"name": "s"}}}}
	if err := kinds["Pool"].accept(t, pool, nil); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"overcommit": "0", "capacityThresholds.alert": "0.2", "capacityThresholds.protected": "0.1", "capacityThresholds.emergency": "0.05",
		"vpsa.requestTimeout": "3m",
	} {
		got, _, err := unstructured.NestedString(pool, append([]string{"spec"}, strings.Split(path, ".")...)...)
		if err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", path, got, err, want)
		}
	}
}

// TestResourcesAreKept: helm deletes no definition, and so no resource, and the seed's short names lead to them.
func TestResourcesAreKept(t *testing.T) {
	names := map[string]string{}
	for _, path := range files(t, crds+"/pools.katbox.io_*.yaml") {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range split(t, content) {
			if o.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
				t.Errorf("%s is not kept", o.GetName())
			}
			short, _, err := unstructured.NestedStringSlice(o.Object, "spec", "names", "shortNames")
			if err != nil {
				t.Fatal(err)
			}
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			for _, name := range short {
				if other, taken := names[name]; taken {
					t.Errorf("%s is %s and %s", name, kind, other)
				}
				names[name] = kind
			}
		}
	}
	want := map[string]string{"vscsc": "PoolClass", "pc": "PoolClass", "vpsa": "Pool", "kvol": "PoolVolume", "ksnap": "PoolSnapshot",
		"vas": "PoolAttachment", "vscnode": "PoolNode"}
	if !maps.Equal(names, want) {
		t.Errorf("the short names are %v, want %v", names, want)
	}
}
