package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// healthKey is what a key of Argo CD's ConfigMap begins with, before the kind.
const healthKey = "resource.customizations.health.pools.katbox.io_"

// TestHealthOfPools: what Argo CD shows of each kind in each state that its definition has.
func TestHealthOfPools(t *testing.T) {
	scripts := healthScripts(t)
	want := map[string]string{
		"": "Progressing", "Ready": "Healthy", "Retained": "Healthy",
		"Failed": "Degraded", "Incompatible": "Degraded", "Unreachable": "Degraded",
	}
	for _, state := range []string{
		"Creating", "Configuring", "Importing", "Provisioning", "Cloning", "TakingSnapshot",
		"Attaching", "ISCSILoginPending", "Detaching", "Deleting",
	} {
		want[state] = "Progressing"
	}
	kinds := 0
	for _, path := range files(t, crds+"/pools.katbox.io_*.yaml") {
		var definition apiextensions.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content(t, path), &definition); err != nil {
			t.Fatal(err)
		}
		kind := definition.Spec.Names.Kind
		status, has := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		if has != (scripts[kind] != "") {
			t.Errorf("%s has a status: %t, and a script: %t", kind, has, !has)
		}
		if !has {
			continue
		}
		kinds++
		for _, state := range append(status.Properties["state"].Enum, apiextensions.JSON{Raw: []byte(`""`)}) {
			var name string
			if err := json.Unmarshal(state.Raw, &name); err != nil {
				t.Fatal(err)
			}
			object := map[string]any{"metadata": map[string]any{"generation": 3}, "status": map[string]any{"state": name, "observedGeneration": 3}}
			if got, message := healthOf(t, scripts[kind], object); got != want[name] || message == "" {
				t.Errorf("%s in state %q is %q, %q; want %q", kind, name, got, message, want[name])
			}
		}
	}
	if kinds != len(scripts) || kinds < 5 {
		t.Errorf("%d kinds have a status, and %q have a script", kinds, slices.Collect(maps.Keys(scripts)))
	}
}

func TestHealthSaysWhy(t *testing.T) {
	scripts := healthScripts(t)
	condition := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Message: message}
	}
	pool := func(state v1alpha1.PoolState, conditions ...metav1.Condition) *v1alpha1.Pool {
		return &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: v1alpha1.PoolStatus{
			State: state, ObservedGeneration: 2, Conditions: conditions,
		}}
	}
	old := pool(v1alpha1.PoolReady)
	old.Generation = 3
	for _, tt := range []struct {
		name, kind   string
		object       any
		want, reason string
	}{
		{"new", "Pool", &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Generation: 1}}, "Progressing", "waiting for the controller"},
		{"changed, and not seen", "Pool", old, "Progressing", "waiting for the controller"},
		{"away", "Pool", pool(v1alpha1.PoolUnreachable, condition("Healthy", metav1.ConditionFalse, "a disk failed"),
			condition("Ready", metav1.ConditionFalse, "no route to host")), "Degraded", "no route to host"},
		{"works, and is short of space", "Pool", pool(v1alpha1.PoolReady, condition("CapacityHealthy", metav1.ConditionFalse, "3 % are free"),
			condition("Ready", metav1.ConditionTrue, "")), "Healthy", "3 % are free"},
		{"works", "Pool", pool(v1alpha1.PoolReady, condition("Ready", metav1.ConditionTrue, "")), "Healthy", "Ready"},
		{"has a pool that failed", "PoolClass", &v1alpha1.PoolClass{Status: v1alpha1.PoolClassStatus{
			State: v1alpha1.ClassFailed, Conditions: []metav1.Condition{condition("Ready", metav1.ConditionFalse, "failed pools: a")},
		}}, "Degraded", "failed pools: a"},
		{"is not what it was", "PoolVolume", &v1alpha1.PoolVolume{Status: v1alpha1.PoolVolumeStatus{
			State: v1alpha1.VolumeFailed, Message: "it is gone from the array",
		}}, "Degraded", "it is gone from the array"},
		{"lost its session", "PoolAttachment", &v1alpha1.PoolAttachment{Status: v1alpha1.PoolAttachmentStatus{
			State: v1alpha1.AttachmentReady, ISCSIStatus: "Disconnected",
		}}, "Degraded", "the node has lost its iSCSI session"},
	} {
		if got, message := healthOf(t, scripts[tt.kind], tt.object); got != tt.want || message != tt.reason {
			t.Errorf("a %s that %s is %q, %q; want %q, %q", tt.kind, tt.name, got, message, tt.want, tt.reason)
		}
	}
}

// healthScripts returns the scripts of deploy/tools by kind.
func healthScripts(t *testing.T) map[string]string {
	t.Helper()
	var config corev1.ConfigMap
	if err := yaml.UnmarshalStrict(content(t, "../../deploy/tools/argocd-cm.yaml"), &config); err != nil {
		t.Fatal(err)
	}
	scripts := map[string]string{}
	for key, script := range config.Data {
		kind, found := strings.CutPrefix(key, healthKey)
		if !found {
			t.Errorf("the key %s is none of Argo CD's for the health of a pool's resource", key)
		}
		scripts[kind] = script
	}
	return scripts
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// healthOf runs a script as Argo CD does: with the libraries that it opens without useOpenLibs.
func healthOf(t *testing.T, script string, object any) (status, message string) {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	state.SetGlobal("obj", luaValue(state, decoded))
	if err := state.DoString(script); err != nil {
		t.Fatalf("the script fails for %s: %v", encoded, err)
	}
	health, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %v for %s", state.Get(-1), encoded)
	}
	return health.RawGetString("status").String(), health.RawGetString("message").String()
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case string:
		return lua.LString(value)
	case float64:
		return lua.LNumber(value)
	case bool:
		return lua.LBool(value)
	case []any:
		table := state.NewTable()
		for _, one := range value {
			table.Append(luaValue(state, one))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, one := range value {
			table.RawSetString(key, luaValue(state, one))
		}
		return table
	}
	return lua.LNil
}
