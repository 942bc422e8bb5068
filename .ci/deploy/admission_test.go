package deploy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/katbox/katbox/internal/node/policy"
)

// values are what users may write, or mean to, as the value of any attribute.
var values = []string{
	"true", "false", "False", "no",
	"", " ", "0", "1", "2", "64", "-1", "0.1", "1.5", "1e3", "1e30", "1E", "1e-3", "100m", "100k", "64Ki", "63Ki", "64000", "65535",
	"65536", "1Gi",
	"1Gi ", " 1Gi", "1gi", "1.5Gi", "1.Gi", ".5Gi", "1T", "1.1T", "1Ei", "1Ei1", "2Ei", "12E", "99999999999999999999", "lots", "1_000",
	"+1Gi", "0x10", "1h", "1ns",
	"0h", "0.0s", "90m", "1h1h", "1h30m", "1.5h", ".5h", "1.h", "1h ", " 1h", "1H", "-1h", "+1h", "9999999h", "2562047h47m16s",
	"2562048h", "3d", "1w", "h", "0d", "d", "1.5d", "1d12h", "12h1d", "1d1d", "1d1.5h", "0y0w1d", "0y0w0d0h0m0s0ms", "1y2w3d4h5m6s7ms",
	"99y999w9999d99999h999999m99999999s9999999999ms", "100y", "10000d", "3D", "-3d", "3d ", "3dd", "1d1us",
	"1h\n", "1µs", "1μs", "١h", "1h;", "500ms", "1us", "Always", "OnFailure", "Never", "always", "ALWAYS", "Always ", "Alwaysy",
	"OnFailureNever", "None",
	"000", "0000", "00", "7", "77", "777", "0777", "1777", "01777", "2777", "4777", "7777", "07777", "0o777", "8", "778", "001", "1000",
	"u=rwx", "0x1ff",
	"uid/scratch", "8b4c1a9e-5f1c-4f0e-9d43-6a1b2c3d4e5f/scratch", "scratch", "/scratch", "uid/", "uid//scratch", "../scratch",
	".uid/scratch", "uid/Scratch",
	"uid/s", "uid/-s", "uid/s-", "uid/a.b", "ns/uid/scratch", "uid/scratch\n", strings.Repeat("1h", 32), strings.Repeat("1h", 33),
	strings.Repeat("9", 64),
	strings.Repeat("u", 253) + "/" + strings.Repeat("v", 63), strings.Repeat("u", 254) + "/v", "uid/" + strings.Repeat("v", 64),
	strings.Repeat("1µs", 21),
}

// keys are those of no attribute.
var wrongKeys = []string{
	"Lifespan", "lifespan ", "", "size", "sizelimit", "ttl", "csi.storage.k8s.io", "csi.storage.k8s.io/",
	"csi.storage.k8s.io/anything-new", "CSI.storage.k8s.io/x", "a\nb",
}

// TestAdmissionAgreesWithTheDaemon: the policy refuses what the daemon refuses, and nothing else. The
// API server's own code evaluates it.
func TestAdmissionAgreesWithTheDaemon(t *testing.T) {
	daemon, err := policy.New(policy.Bounds{Lifespan: time.Hour, MaxLifespan: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	admits := admissionPolicy(t)
	accepted, refused := 0, 0
	check := func(readOnly bool, attributes map[string]string) {
		t.Helper()
		_, want := daemon.Terms("default", attributes)
		if want == nil {
			_, want = policy.Attach(attributes, readOnly)
		}
		if want == nil {
			accepted++
		} else {
			refused++
		}
		if got := admits(pod(readOnly, attributes)); (got == "") != (want == nil) {
			t.Errorf("%.80q, read-only %t: the API server says %q, the daemon %v", attributes, readOnly, got, want)
		}
	}
	for _, a := range policy.Attributes {
		before := accepted
		for _, value := range values {
			check(true, map[string]string{a.Key: value})
		}
		if accepted == before {
			t.Errorf("none of values is one for %s: add some", a.Key)
		}
	}
	for _, key := range wrongKeys {
		check(false, map[string]string{key: "1h"})
	}
	check(false, nil)
	check(false, map[string]string{"attach": "uid/scratch"})
	check(true, map[string]string{"attach": "uid/scratch", "mode": "0700"})
	check(true, map[string]string{"attach": "uid/scratch", "csi.storage.k8s.io/x": ""})
	check(false, map[string]string{"lifespan": "1h", "sizeLimit": "1Gi", "retain": "Never"})
	check(false, map[string]string{"lifespan": "1h", "sizeLimit": "1Gi", "retain": "Newer"})
	if accepted < 50 || refused < 500 {
		t.Errorf("%d inputs are accepted and %d refused: those are too few to tell", accepted, refused)
	}
}

// TestAdmissionOfWorkloads: what makes pods is refused as well, unless it is only updated elsewhere. What
// has other volumes is let through, and the key is named.
func TestAdmissionOfWorkloads(t *testing.T) {
	admits := admissionPolicy(t)
	bad := pod(false, map[string]string{"lifespam": "1h"})["spec"]
	good := pod(false, map[string]string{"lifespan": "1h"})["spec"]
	template := func(spec any) map[string]any { return map[string]any{"template": map[string]any{"spec": spec}} }
	for name, tt := range map[string]struct {
		object map[string]any
		want   string
	}{
		"job": {map[string]any{"kind": "Job", "spec": template(bad)}, "lifespam is not known; there are archive, attach"},
		"cron job": {map[string]any{"kind": "CronJob", "spec": map[string]any{"jobTemplate": map[string]any{"spec": template(bad)}}},
			"lifespam is not known"},
		"good":       {map[string]any{"kind": "Deployment", "spec": template(good)}, ""},
		"no volumes": {map[string]any{"kind": "Pod", "spec": map[string]any{}}, ""},
		"another driver": {map[string]any{"kind": "Pod", "spec": map[string]any{"volumes": []any{
			map[string]any{"name": "a", "csi": map[string]any{"driver": "other", "volumeAttributes": map[string]any{"x": "y"}}},
			map[string]any{"name": "b", "emptyDir": map[string]any{}},
			map[string]any{"name": "c", "csi": map[string]any{"driver": "katbox.csi.paypal.com"}},
		}}}, ""},
		"one of two": {map[string]any{"kind": "Pod", "spec": map[string]any{"volumes": append(volumesOf(good), volumesOf(bad)...)}},
			"lifespam"},
	} {
		if got := admits(tt.object); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	old := map[string]any{"kind": "Job", "spec": template(bad)}
	labeled := map[string]any{"kind": "Job", "spec": template(bad), "metadata": map[string]any{"labels": map[string]any{"a": "b"}}}
	if got := admits(labeled, old); got != "" {
		t.Errorf("an update of something else: %q", got)
	}
	if got := admits(map[string]any{"kind": "Job", "spec": template(bad)}, map[string]any{"kind": "Job",
		"spec": template(good)}); got == "" {
		t.Error("an update to a bad attribute is let through")
	}
}

func volumesOf(spec any) []any { return spec.(map[string]any)["volumes"].([]any) }

func pod(readOnly bool, attributes map[string]string) map[string]any {
	csi := map[string]any{"driver": "katbox.csi.paypal.com"}
	if readOnly {
		csi["readOnly"] = true
	}
	if attributes != nil {
		all := map[string]any{}
		for key, value := range attributes {
			all[key] = value
		}
		csi["volumeAttributes"] = all
	}
	volumes := []any{map[string]any{"name": "scratch", "csi": csi}}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"volumes": volumes}}
}

// admissionPolicy returns what evaluates the policy: for an object, and the old one of an update, it
// returns the first message of a refusal, or "".
func admissionPolicy(t *testing.T) func(object map[string]any, old ...map[string]any) string {
	t.Helper()
	validate := validator(t, one[*admissionv1.ValidatingAdmissionPolicy](t, kustomize(t, withAdmission)).Spec)
	return func(object map[string]any, old ...map[string]any) string {
		gvk := schema.GroupVersionKind{Version: "v1", Kind: fmt.Sprint(object["kind"])}
		resource := schema.GroupVersionResource{Version: "v1", Resource: "objects"}
		operation, now, before := admission.Create, &unstructured.Unstructured{Object: object}, (*unstructured.Unstructured)(nil)
		if len(old) > 0 {
			operation, before = admission.Update, &unstructured.Unstructured{Object: old[0]}
		}
		return validate(now, before, gvk, resource, "", operation, nil)
	}
}

// validator returns what evaluates a policy by the API server's own code. It returns the first message of a
// refusal, or "".
func validator(t *testing.T, spec admissionv1.ValidatingAdmissionPolicySpec) func(now, before *unstructured.Unstructured,
	gvk schema.GroupVersionKind, resource schema.GroupVersionResource, subresource string, operation admission.Operation,
	who user.Info) string {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	var variables []cel.NamedExpressionAccessor
	for _, v := range spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, options, environment.NewExpressions)
	var conditions, validations, messages []cel.ExpressionAccessor
	for i := range spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&spec.MatchConditions[i]))
	}
	for _, v := range spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		if v.MessageExpression == "" {
			messages = append(messages, nil)
			continue
		}
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	for _, e := range append(append(append([]cel.ExpressionAccessor{}, conditions...), validations...), messages...) {
		if e == nil {
			continue
		}
		if result := compiler.CompileCELExpression(e, options, environment.NewExpressions); result.Error != nil {
			t.Fatalf("%s: %v", e.GetExpression(), result.Error)
		}
	}
	matcher := matchconditions.NewMatcher(compiler.CompileCondition(conditions, options, environment.NewExpressions),
		spec.FailurePolicy, "policy", "validate", "katbox")
	validator := validating.NewValidator(compiler.CompileCondition(validations, options, environment.NewExpressions), matcher,
		compiler.CompileCondition(nil, options, environment.NewExpressions),
		compiler.CompileCondition(messages, cel.OptionalVariableDeclarations{}, environment.NewExpressions), spec.FailurePolicy, nil)
	return func(now, before *unstructured.Unstructured, gvk schema.GroupVersionKind, resource schema.GroupVersionResource,
		subresource string,
		operation admission.Operation, who user.Info,
	) string {
		versioned := &admission.VersionedAttributes{VersionedKind: gvk, VersionedObject: admission.NewLazyObject(now)}
		var old runtime.Object
		if before != nil {
			old, versioned.VersionedOldObject = before, admission.NewLazyObject(before)
		}
		versioned.Attributes = admission.NewAttributesRecord(now, old, gvk, now.GetNamespace(), now.GetName(), resource, subresource,
			operation, nil, false, who)
		result := validator.Validate(t.Context(), resource, versioned, nil, nil, celconfig.RuntimeCELCostBudget, nil)
		for _, d := range result.Decisions {
			if d.Action == validating.ActionDeny {
				return d.Message
			}
		}
		return ""
	}
}
