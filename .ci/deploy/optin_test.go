package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	scheme "k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/yaml"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/optin"
)

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// converter is the policy as an API server evaluates it.
type converter struct {
	matcher matchconditions.Matcher
	patcher patch.Patcher
	context func(t *testing.T) *cel.CompositedCompiler
}

// newConverter compiles the policy with what an API server of 1.34 knows: the libraries of the version before.
func newConverter(t *testing.T) converter {
	t.Helper()
	content, err := os.ReadFile(manifests + "/components/opt-in/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec := one[*admissionv1.MutatingAdmissionPolicy](t, split(t, content)).Spec
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 33)))
	if err != nil {
		t.Fatal(err)
	}
	options := cel.OptionalVariableDeclarations{HasParams: true, HasAuthorizer: true}
	for _, v := range spec.Variables {
		variable := &validating.Variable{Name: v.Name, Expression: v.Expression}
		if result := compiler.CompileAndStoreVariable(variable, options, environment.NewExpressions); result.Error != nil {
			t.Fatalf("variable %s: %v", v.Name, result.Error)
		}
	}
	var conditions []cel.ExpressionAccessor
	for i := range spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&spec.MatchConditions[i]))
	}
	matcher := matchconditions.NewMatcher(compiler.CompileCondition(conditions, options, environment.NewExpressions),
		spec.FailurePolicy, "policy", "validate", "katbox")
	options.HasPatchTypes = true
	evaluator := compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: spec.Mutations[0].JSONPatch.Expression}, options,
		environment.NewExpressions)
	for _, err := range evaluator.CompilationErrors() {
		t.Fatal(err)
	}
	return converter{matcher, patch.NewJSONPatcher(evaluator), func(*testing.T) *cel.CompositedCompiler { return compiler }}
}

// admit does with a pod what the API server does.
func (c converter) admit(t *testing.T, pod *corev1.Pod, params map[string]string, annotations map[string]string) *corev1.Pod {
	t.Helper()
	object := pod.DeepCopy()
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	scheme.Scheme.Default(object)
	resource := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	attributes := &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(object, nil, podKind, "ml", pod.Name, resource, "", admission.Create,
			&metav1.CreateOptions{}, false, nil),
		VersionedKind: podKind, VersionedObject: admission.NewLazyObject(object),
	}
	data := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: params}
	ctx := c.context(t).CreateContext(t.Context())
	switch matched := c.matcher.Match(ctx, attributes, data, nil); {
	case matched.Error != nil:
		t.Fatal(matched.Error)
	case !matched.Matches:
		return object
	}
	got, err := c.patcher.Patch(ctx, patch.Request{
		MatchedResource: resource, VersionedAttributes: attributes,
		ObjectInterfaces:  admission.NewObjectInterfacesFromScheme(scheme.Scheme),
		OptionalVariables: cel.OptionalVariableBindings{VersionedParams: data},
		Namespace:         &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml", Annotations: annotations}},
	}, celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatalf("%v: %s", err, asYAML(t, object))
	}
	return got.(*corev1.Pod)
}

func asYAML(t *testing.T, object any) string {
	t.Helper()
	content, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// check compares what the API server made of a pod with what the table in Go says, and returns the decision. The API server
// has to accept what it made.
func (c converter) check(t *testing.T, pod *corev1.Pod, params, annotations map[string]string) optin.Decision {
	t.Helper()
	before := pod.DeepCopy()
	scheme.Scheme.Default(before)
	after := c.admit(t, pod, params, annotations)
	var seen optin.Pod
	content, err := json.Marshal(before)
	if err == nil {
		err = json.Unmarshal(content, &seen)
	}
	if err != nil {
		t.Fatal(err)
	}
	decision := optin.Params(params).Decide(&seen, annotations)
	if want := applied(before, decision); !reflect.DeepEqual(plain(t, want), plain(t, after)) {
		t.Errorf("the API server makes\n%s\nand the table says\n%s", asYAML(t, after.Spec), asYAML(t, want.Spec))
	}
	untouched(t, before, after)
	valid(t, after)
	return decision
}

// untouched fails if a pod is changed that must not be, or a volume. It does not ask the table.
func untouched(t *testing.T, before, after *corev1.Pod) {
	t.Helper()
	_, mirror := before.Annotations["kubernetes.io/config.mirror"]
	_, fargate := before.Labels["eks.amazonaws.com/fargate-profile"]
	left := mirror || fargate || before.Labels[optin.Label] == optin.Drop || before.Spec.NodeName != "" ||
		strings.HasPrefix(before.Spec.PriorityClassName, "system-") || before.Spec.OS != nil && before.Spec.OS.Name == corev1.Windows ||
		before.Spec.NodeSelector["kubernetes.io/os"] == "windows" || before.Spec.NodeSelector["type"] == "virtual-kubelet" ||
		slices.ContainsFunc(before.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" })
	if left && !reflect.DeepEqual(plain(t, before), plain(t, after)) {
		t.Errorf("this pod has to stay as it is:\n%s", asYAML(t, before))
	}
	files := map[string]bool{}
	for _, container := range slices.Concat(before.Spec.Containers, before.Spec.InitContainers) {
		for _, e := range container.Env {
			if e.ValueFrom != nil && e.ValueFrom.FileKeyRef != nil {
				files[e.ValueFrom.FileKeyRef.VolumeName] = true
			}
		}
	}
	if len(after.Spec.Volumes) < len(before.Spec.Volumes) {
		t.Errorf("a volume is gone:\n%s", asYAML(t, after))
		return
	}
	_, chosen := before.Annotations[optin.VolumesAnnotation]
	for i, v := range before.Spec.Volumes {
		is := after.Spec.Volumes[i]
		others := !chosen && !preset(before) && slices.ContainsFunc([]string{"istio-", "workload-", "linkerd-",
			"tekton-", "var-run-argo"}, func(prefix string) bool { return strings.HasPrefix(v.Name, prefix) })
		stays := v.EmptyDir == nil || v.EmptyDir.Medium != "" || files[v.Name] || others
		if is.Name != v.Name || stays && !equality.Semantic.DeepEqual(v, is) {
			t.Errorf("volume %s has become\n%s", v.Name, asYAML(t, is))
		}
	}
	for i, container := range before.Spec.Containers {
		mounts := after.Spec.Containers[i].VolumeMounts
		if kept := mounts[:min(len(mounts), len(container.VolumeMounts))]; !equality.Semantic.DeepEqual(kept, container.VolumeMounts) {
			t.Errorf("container %s has the mounts\n%s", container.Name, asYAML(t, mounts))
		}
	}
}

func plain(t *testing.T, pod *corev1.Pod) map[string]any {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Pod{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// applied is the pod with what is decided, and nothing else.
func applied(pod *corev1.Pod, d optin.Decision) *corev1.Pod {
	pod = pod.DeepCopy()
	scratch := func(name string, attributes map[string]string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: api.DriverName, VolumeAttributes: attributes}}}
	}
	for i, f := range d.Volumes {
		if f.Because == "" {
			pod.Spec.Volumes[i] = scratch(f.Name, f.Attributes)
		}
	}
	if d.Added != nil {
		pod.Spec.Volumes = append(pod.Spec.Volumes, scratch(d.Added.Volume, d.Added.Attributes))
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: d.Added.Volume, MountPath: d.Added.Path, SubPath: c.Name})
		}
	}
	if d.Affinity {
		requireNode(&pod.Spec)
	}
	return pod
}

func requireNode(spec *corev1.PodSpec) {
	here := corev1.NodeSelectorRequirement{Key: api.Topology, Operator: corev1.NodeSelectorOpExists}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{here}}}}
		return
	}
	for i := range (*required).NodeSelectorTerms {
		term := &(*required).NodeSelectorTerms[i]
		has := slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return reflect.DeepEqual(e, here) })
		if len(term.MatchExpressions)+len(term.MatchFields) > 0 && !has {
			term.MatchExpressions = append(term.MatchExpressions, here)
		}
	}
}

// preset reports whether a preset is for a pod.
func preset(pod *corev1.Pod) bool {
	return slices.ContainsFunc(optin.Presets, func(p optin.Preset) bool { _, ok := pod.Labels[p.Label]; return ok })
}

// TestOptInOfControllers: the pods that controllers make, and which of their volumes become Katbox volumes.
func TestOptInOfControllers(t *testing.T) {
	c := newConverter(t)
	for _, path := range files(t, "testdata/opt-in/*.yaml") {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range split(t, content) {
			accepted, err := accept(o)
			if err != nil {
				t.Fatal(err)
			}
			pod := accepted.(*corev1.Pod)
			d := c.check(t, pod, optin.Defaults(), nil)
			var converted []string
			for _, f := range d.Volumes {
				if f.Because == "" {
					converted = append(converted, f.Name)
				}
			}
			if d.Added != nil {
				converted = append(converted, d.Added.Volume)
			}
			if want := pod.Annotations["test/converted"]; strings.Join(converted, " ") != want {
				t.Errorf("%s: converted are %v, want %q (%s)", pod.Name, converted, want, d.Because)
			}
		}
	}
}

// valid is false, and the test fails, if the API server would refuse a pod.
func valid(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err == nil {
		_, err = accept(&unstructured.Unstructured{Object: object})
	}
	if err != nil {
		t.Errorf("%v\n%s", err, asYAML(t, pod))
	}
}

// TestOptInOfManyVolumes: a pod with 200 volumes is within the budget of the API server, in memory or not.
func TestOptInOfManyVolumes(t *testing.T) {
	c := newConverter(t)
	pod := randomPod(rand.New(rand.NewPCG(1, 1)))
	pod.Labels, pod.Annotations, pod.OwnerReferences = nil, nil, nil
	pod.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}
	for i := range 200 {
		name := fmt.Sprintf("volume-%d", i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name,
			VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	d := c.check(t, pod, optin.Defaults(), map[string]string{"katbox.io/lifespan": "1h"})
	if len(d.Volumes) != 200 || d.Volumes[199].Because != "" {
		t.Errorf("not all are converted: %+v", d)
	}
}

// TestOptInOfAnyPod: table and CEL agree on random pods, so that a pod changes in nothing but what the table says; and no
// pod that the API server accepts is refused once it is converted. KATBOX_OPT_IN_PODS sets how many.
func TestOptInOfAnyPod(t *testing.T) {
	c := newConverter(t)
	most := 2000
	if text := os.Getenv("KATBOX_OPT_IN_PODS"); text != "" {
		if _, err := fmt.Sscan(text, &most); err != nil {
			t.Fatal(err)
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	converted, added, alone := 0, 0, 0
	for range most {
		pod, params := randomPod(r), maps.Clone(optin.Defaults())
		if r.IntN(3) == 0 {
			params[optin.TmpKey] = "true"
		}
		if r.IntN(3) == 0 {
			params[optin.AffinityKey] = optin.AffinityNone
		}
		annotations := map[string]string{}
		if r.IntN(3) == 0 {
			annotations["katbox.io/lifespan"] = "2h"
		}
		d := c.check(t, pod, params, annotations)
		for _, f := range d.Volumes {
			if f.Because == "" {
				converted++
			}
		}
		if d.Added != nil {
			added++
		}
		if d.Because != "" {
			alone++
		}
		if t.Failed() {
			return
		}
	}
	if converted < most/4 || added < most/50 || alone < most/50 {
		t.Errorf("of %d pods %d volumes are converted, %d added, %d pods left alone: too few to tell", most, converted, added, alone)
	}
}
