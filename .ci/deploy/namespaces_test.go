package deploy

import (
	"os"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// TestExampleOfNamespaces: the sample policy refuses pods with an inline volume of Katbox, and no others, in all
// namespaces but those with the label. The API server's own code evaluates it.
func TestExampleOfNamespaces(t *testing.T) {
	content, err := os.ReadFile(examples + "/admission/namespaces.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := split(t, content)
	policy, binding := one[*admissionv1.ValidatingAdmissionPolicy](t, objects), one[*admissionv1.ValidatingAdmissionPolicyBinding](t, objects)
	checkPodPolicy(t, policy, binding)
	bound, err := metav1.LabelSelectorAsSelector(binding.Spec.MatchResources.NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		labels labels.Set
		want   bool
	}{
		"no label":      {labels.Set{"kubernetes.io/metadata.name": "ci"}, true},
		"allowed":       {labels.Set{"katbox.io/inline-volumes": "allowed"}, false},
		"another value": {labels.Set{"katbox.io/inline-volumes": "no"}, true},
		"no value":      {labels.Set{"katbox.io/inline-volumes": ""}, true},
	} {
		if got := bound.Matches(tt.labels); got != tt.want {
			t.Errorf("a namespace with %s: the policy holds there: %t", name, got)
		}
	}

	validate := validator(t, policy.Spec)
	volumes := func(some ...any) map[string]any { return map[string]any{"volumes": some} }
	ours := map[string]any{"name": "a", "csi": map[string]any{"driver": "katbox.csi.paypal.com"}}
	other := map[string]any{"name": "b", "csi": map[string]any{"driver": "secrets-store.csi.k8s.io"}}
	empty := map[string]any{"name": "c", "emptyDir": map[string]any{}}
	for name, tt := range map[string]struct {
		spec    map[string]any
		refused bool
	}{
		"no volumes":      {map[string]any{}, false},
		"other volumes":   {volumes(other, empty), false},
		"ours":            {volumes(ours), true},
		"ours among them": {volumes(empty, other, ours), true},
		"ours, attached": {volumes(map[string]any{"name": "a", "csi": map[string]any{"driver": "katbox.csi.paypal.com", "readOnly": true,
			"volumeAttributes": map[string]any{"attach": "uid/scratch"}}}), true},
	} {
		message := makePod(validate, tt.spec)
		if (message != "") != tt.refused || tt.refused && !strings.Contains(message, "katbox.io/inline-volumes=allowed") {
			t.Errorf("%s: the message is %q", name, message)
		}
	}
}

// checkPodPolicy checks that a sample policy is for each pod that is made, and refuses.
func checkPodPolicy(t *testing.T, policy *admissionv1.ValidatingAdmissionPolicy, binding *admissionv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	rules := policy.Spec.MatchConstraints.ResourceRules
	if len(rules) != 1 || !slices.Equal(rules[0].Resources, []string{"pods"}) || !slices.Equal(rules[0].APIGroups, []string{""}) ||
		!slices.Equal(rules[0].Operations, []admissionv1.OperationType{admissionv1.Create}) || *policy.Spec.FailurePolicy != admissionv1.Fail {
		t.Errorf("the policy is for %+v, and not for each pod that is made", rules)
	}
	if actions := binding.Spec.ValidationActions; binding.Spec.PolicyName != policy.Name ||
		!slices.Equal(actions, []admissionv1.ValidationAction{admissionv1.Deny}) {
		t.Errorf("the binding does %s of %s", actions, binding.Spec.PolicyName)
	}
}

// makePod returns why a policy refuses a pod; empty if it does not.
func makePod(validate func(now, before *unstructured.Unstructured, gvk schema.GroupVersionKind, resource schema.GroupVersionResource,
	subresource string, operation admission.Operation, who user.Info) string, spec map[string]any,
) string {
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "p", "namespace": "ci"}, "spec": spec}}
	return validate(pod, nil, schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", admission.Create, nil)
}

// TestExampleOfAttach: the sample policy refuses pods that attach a retained volume and do not end by themselves, and no
// others.
func TestExampleOfAttach(t *testing.T) {
	content, err := os.ReadFile(examples + "/admission/attach.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := split(t, content)
	policy, binding := one[*admissionv1.ValidatingAdmissionPolicy](t, objects), one[*admissionv1.ValidatingAdmissionPolicyBinding](t, objects)
	checkPodPolicy(t, policy, binding)
	if binding.Spec.MatchResources != nil {
		t.Error("the policy holds in some namespaces only")
	}
	validate := validator(t, policy.Spec)
	volume := func(driver string, attributes map[string]any) map[string]any {
		csi := map[string]any{"driver": driver, "readOnly": true}
		if attributes != nil {
			csi["volumeAttributes"] = attributes
		}
		return map[string]any{"name": "a", "csi": csi}
	}
	const ours = "katbox.csi.paypal.com"
	attached := volume(ours, map[string]any{"attach": "uid/scratch"})
	pod := func(seconds int64, volumes ...any) map[string]any {
		spec := map[string]any{"volumes": volumes}
		if seconds > 0 {
			spec["activeDeadlineSeconds"] = seconds
		}
		return spec
	}
	for name, tt := range map[string]struct {
		spec    map[string]any
		refused bool
	}{
		"no volumes":          {map[string]any{}, false},
		"a volume of its own": {pod(0, volume(ours, nil)), false},
		"with attributes":     {pod(0, volume(ours, map[string]any{"lifespan": "1h"})), false},
		"of another driver":   {pod(0, volume("other", map[string]any{"attach": "uid/scratch"})), false},
		"without an end":      {pod(0, volume(ours, nil), attached), true},
		"within a day":        {pod(86400, attached), false},
		"later":               {pod(86401, attached), true},
	} {
		message := makePod(validate, tt.spec)
		if (message != "") != tt.refused || tt.refused && !strings.Contains(message, "activeDeadlineSeconds") {
			t.Errorf("%s: the message is %q", name, message)
		}
	}
}
