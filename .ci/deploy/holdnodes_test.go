package deploy

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic/fake"
	scheme "k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/yaml"
)

const (
	// withArchive is a kustomization that has the component archive, withHolds one that has hold-nodes as well.
	withArchive = "../../.ci/deploy/testdata/archive"
	withHolds   = "../../.ci/deploy/testdata/hold-nodes"
	// archived are the values of the first, held those of the second.
	archived = "gateway.enabled=true,archive.enabled=true,archive.bucket.name=my-bucket," +
		"archive.bucket.endpoint=https://storage.googleapis.com,archive.bucket.region=auto"
	held = "gateway.enabled=true,archive.enabled=true,archive.bucket.name=katbox-archive,archive.holdNodes=true"
)

// holders are the ways to install a gateway that holds nodes, without what comes when it goes.
func holders(t *testing.T) map[string][]*unstructured.Unstructured {
	return map[string][]*unstructured.Unstructured{
		"components": kustomize(t, withHolds),
		"chart":      withoutHooks(helm(t, "--set", held)),
		"renamed": withoutHooks(helm(t, "--namespace", "batch", "--set", held,
			"--set", "fullnameOverride=scratch,gateway.serviceAccount.name=entrance")),
	}
}

// TestHoldingIsARightOfItsOwn: without it the gateway has none on Nodes, and no policy about them.
func TestHoldingIsARightOfItsOwn(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"gateway": kustomize(t, "overlays/with-gateway"), "archive": kustomize(t, withArchive), "chart": helm(t, "--set", archived),
		"no archive": helm(t, "--set", "gateway.enabled=true,archive.holdNodes=true"),
	} {
		deployment := one[*appsv1.Deployment](t, objects)
		if _, holds := flagsOf(deployment.Spec.Template.Spec.Containers[0])["--hold-nodes"]; holds {
			t.Errorf("%s: the gateway is to hold nodes", name)
		}
		for _, right := range rightsOf(t, objects, deployment.Spec.Template.Spec.ServiceAccountName) {
			if strings.Contains(right, "nodes") {
				t.Errorf("%s: it may %s", name, right)
			}
		}
		if n := len(all[*admissionv1.ValidatingAdmissionPolicy](t, objects)) + len(all[*batchv1.Job](t, objects)); n > 0 {
			t.Errorf("%s: %d policies and Jobs", name, n)
		}
	}
	for name, objects := range holders(t) {
		deployment := one[*appsv1.Deployment](t, objects)
		if _, holds := flagsOf(deployment.Spec.Template.Spec.Containers[0])["--hold-nodes"]; !holds {
			t.Errorf("%s: the gateway is not to hold nodes", name)
		}
		rights := rightsOf(t, objects, deployment.Spec.Template.Spec.ServiceAccountName)
		if !slices.Contains(rights, ": nodes get list patch") {
			t.Errorf("%s: it may\n%s", name, strings.Join(rights, "\n"))
		}
	}
}

// TestTheGatewayChangesNothingElseOfANode: the API server's own code evaluates the policy.
func TestTheGatewayChangesNothingElseOfANode(t *testing.T) {
	const (
		scale, disrupt, mark = "cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt", "katbox.io/node-hold"
		noOther, nothing     = "changes no other annotations", "changes nothing of a Node but annotations"
		noValue, noNode      = "changes no value of it", "makes and deletes no Node"
	)
	before := map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{
			"name": "n1", "uid": "u", "resourceVersion": "7", "labels": map[string]any{"a": "b"},
			"annotations":   map[string]any{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
			"managedFields": []any{map[string]any{"manager": "kubelet", "operation": "Update"}},
		},
		"spec":   map[string]any{"podCIDR": "10.0.0.0/24", "taints": []any{map[string]any{"key": "k", "effect": "NoSchedule"}}},
		"status": map[string]any{"phase": "Running"},
	}
	with := func(node map[string]any, value any, path ...string) map[string]any {
		node = runtime.DeepCopyJSON(node)
		if value == nil {
			unstructured.RemoveNestedField(node, path...)
		} else if err := unstructured.SetNestedField(node, value, path...); err != nil {
			t.Fatal(err)
		}
		return node
	}
	annotated := func(node map[string]any, key string, value any) map[string]any {
		return with(node, value, "metadata", "annotations", key)
	}
	holds := annotated(annotated(annotated(before, scale, "true"), disrupt, "true"), mark, `{"since":"2026-11-30T16:00:00Z"}`)
	holds = with(holds, []any{map[string]any{"manager": "katbox-gateway", "operation": "Update"}}, "metadata", "managedFields")
	bare := with(before, nil, "metadata", "annotations")
	theirs := annotated(before, disrupt, "5m")
	for name, objects := range holders(t) {
		policy, binding := one[*admissionv1.ValidatingAdmissionPolicy](t, objects), one[*admissionv1.ValidatingAdmissionPolicyBinding](t, objects)
		rule := policy.Spec.MatchConstraints.ResourceRules
		if binding.Spec.PolicyName != policy.Name || *policy.Spec.FailurePolicy != admissionv1.Fail || len(rule) != 1 ||
			!slices.Equal(rule[0].Operations, []admissionv1.OperationType{admissionv1.OperationAll}) ||
			!slices.Equal(rule[0].Resources, []string{"nodes", "nodes/*"}) || !slices.Equal(rule[0].APIVersions, []string{"*"}) {
			t.Fatalf("%s: %+v, bound by %+v", name, policy.Spec, binding.Spec)
		}
		deployment := one[*appsv1.Deployment](t, objects)
		gateway := "system:serviceaccount:" + deployment.Namespace + ":" + deployment.Spec.Template.Spec.ServiceAccountName
		validate := validator(t, policy.Spec)
		ask := func(now, before map[string]any, operation admission.Operation, subresource, by string) string {
			object := func(content map[string]any) *unstructured.Unstructured {
				if content == nil {
					return nil
				}
				return &unstructured.Unstructured{Object: content}
			}
			nodes := schema.GroupVersion{Version: "v1"}
			return validate(object(now), object(before), nodes.WithKind("Node"), nodes.WithResource("nodes"), subresource, operation,
				&user.DefaultInfo{Name: by})
		}
		for what, tt := range map[string]struct {
			now, before map[string]any
			refused     string
		}{
			"holds":              {holds, before, ""},
			"releases":           {before, holds, ""},
			"holds a bare one":   {with(bare, map[string]any{scale: "true"}, "metadata", "annotations"), bare, ""},
			"changes nothing":    {before, before, ""},
			"notes a past hold":  {annotated(before, mark, `{"past":[]}`), before, ""},
			"beside a person's":  {annotated(theirs, scale, "true"), theirs, ""},
			"another annotation": {annotated(before, "a", "b"), before, noOther},
			"takes one away":     {with(before, nil, "metadata", "annotations"), before, noOther},
			"changes one":        {annotated(before, "volumes.kubernetes.io/controller-managed-attach-detach", "false"), before, noOther},
			"another value":      {annotated(before, scale, "false"), before, noValue},
			"a person's value":   {annotated(theirs, disrupt, "true"), theirs, noValue},
			"a label":            {with(before, "b", "metadata", "labels", "b"), before, nothing},
			"no labels":          {with(before, nil, "metadata", "labels"), before, nothing},
			"a finalizer":        {with(before, []any{"x/y"}, "metadata", "finalizers"), before, nothing},
			"an owner":           {with(before, []any{map[string]any{"name": "x"}}, "metadata", "ownerReferences"), before, nothing},
			"cordons it":         {with(before, true, "spec", "unschedulable"), before, nothing},
			"takes a taint away": {with(before, nil, "spec", "taints"), before, nothing},
			"while it holds":     {with(holds, nil, "spec", "taints"), before, nothing},
			"its status beside":  {with(before, "Failed", "status", "phase"), before, nothing},
			"all of its status":  {with(before, nil, "status"), before, nothing},
		} {
			if got := ask(tt.now, tt.before, admission.Update, "", gateway); tt.refused == "" && got != "" || !strings.Contains(got, tt.refused) {
				t.Errorf("%s: %s: refused with %q, want %q", name, what, got, tt.refused)
			}
		}
		for what, got := range map[string]string{
			"makes one":  ask(before, nil, admission.Create, "", gateway),
			"its status": ask(with(before, "Failed", "status", "phase"), before, admission.Update, "status", gateway),
		} {
			if !strings.Contains(got, noNode) {
				t.Errorf("%s: %s: refused with %q", name, what, got)
			}
		}
		if got := ask(with(before, true, "spec", "unschedulable"), before, admission.Update, "", "admin"); got != "" {
			t.Errorf("%s: a person is refused: %s", name, got)
		}
	}
}

// hooksOf are the objects that come when something has happened to the release.
func hooksOf(objects []*unstructured.Unstructured, when string) (hooks []*unstructured.Unstructured) {
	for _, o := range objects {
		if o.GetAnnotations()["helm.sh/hook"] == when {
			hooks = append(hooks, o)
		}
	}
	return hooks
}

// TestNodesAreReleased when the release is deleted, and by an upgrade that ends what was there; by a Job with rights of its
// own, since the gateway's are gone by then.
func TestNodesAreReleased(t *testing.T) {
	chart, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	const off = "gateway: {enabled: true}\n"
	const on = off + "archive: {enabled: true, holdNodes: true, bucket: {name: evidence}}\n"
	for name, tt := range map[string]struct {
		values string
		was    bool
		want   string
	}{
		"never":                 {off, false, ""},
		"on":                    {on, false, "post-delete"},
		"still on":              {on, true, "post-delete"},
		"switched off":          {off, true, "post-upgrade"},
		"without a gateway":     {"{}", true, "post-upgrade"},
		"with a mirror, and on": {on + "imageRegistry: mirror.example.com\n", false, "post-delete"},
	} {
		there := cluster{fake.NewSimpleDynamicClient(scheme.Scheme)}
		if tt.was {
			role := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
				"metadata": map[string]any{"name": "katbox-gateway-hold-nodes"}}}
			roles := there.Resource(rbacv1.SchemeGroupVersion.WithResource("clusterroles"))
			if _, err := roles.Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		values := map[string]any{}
		if err := yaml.Unmarshal([]byte(tt.values), &values); err != nil {
			t.Fatal(err)
		}
		rendered, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "katbox", Namespace: namespace,
			IsUpgrade: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		files, err := engine.RenderWithClientProvider(chart, rendered, there)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSpace(files["katbox/templates/gateway/releasenodes.yaml"])
		if tt.want == "" {
			if text != "" {
				t.Errorf("%s: there is\n%s", name, text)
			}
			continue
		}
		hooks := hooksOf(split(t, []byte(text)), tt.want)
		acceptAll(t, hooks)
		job := one[*batchv1.Job](t, hooks)
		pod := job.Spec.Template
		rights := rightsOf(t, hooks, pod.Spec.ServiceAccountName)
		if len(hooks) != 4 || !slices.Equal(rights, []string{": nodes get list patch"}) {
			t.Errorf("%s: %d objects, it may %q", name, len(hooks), rights)
		}
		if refused := evaluate(t, api.LevelRestricted, &pod.ObjectMeta, &pod.Spec); refused != "" {
			t.Errorf("%s: %s", name, refused)
		}
		c := pod.Spec.Containers[0]
		mirrored := strings.HasPrefix(c.Image, "mirror.example.com/")
		if !slices.Equal(c.Args, []string{"--namespace=katbox", "--release-nodes"}) || mirrored != strings.Contains(tt.values, "mirror") ||
			job.Annotations["helm.sh/hook-weight"] != "1" {
			t.Errorf("%s: %s %v, %v", name, c.Image, c.Args, job.Annotations)
		}
	}
}
