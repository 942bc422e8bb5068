package deploy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// everything switches all parts of the chart on, in an OpenShift cluster.
var everything = []string{"--api-versions", "security.openshift.io/v1", "--set",
	"gateway.enabled=true,gateway.certificates.mode=certManager,pools.enabled=true,pools.sidecars.snapshotter.enabled=true," +
		"networkPolicy.enabled=true,admissionPolicy.enabled=true,podMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true," +
		"optIn.enabled=true",
	"--set-json", localPools}

func with(args ...string) []string { return append(slices.Clone(everything), args...) }

// TestImages: a registry takes the place of the one that a repository names. Neither a port nor a dot elsewhere is one.
func TestImages(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, test := range map[string]struct{ image, registry, want string }{
		"default":           {`{}`, "", "ghcr.io/katbox/katbox:v0.1.0"},
		"tag":               {`{"tag": "v9"}`, "", "ghcr.io/katbox/katbox:v9"},
		"digest":            {`{"tag": "v9", "digest": "` + digest + `"}`, "", "ghcr.io/katbox/katbox@" + digest},
		"mirror of all":     {`{}`, "mirror.example.com:5000/ghcr", "mirror.example.com:5000/ghcr/katbox/katbox:v0.1.0"},
		"registry":          {`{"registry": "registry.example.com"}`, "", "registry.example.com/katbox/katbox:v0.1.0"},
		"its own first":     {`{"registry": "registry.example.com"}`, "mirror.example.com", "registry.example.com/katbox/katbox:v0.1.0"},
		"short name":        {`{"repository": "katbox"}`, "", "katbox:v0.1.0"},
		"short, mirrored":   {`{"repository": "katbox"}`, "mirror.example.com", "mirror.example.com/katbox:v0.1.0"},
		"account, mirrored": {`{"repository": "me/kat.box"}`, "mirror.example.com", "mirror.example.com/me/kat.box:v0.1.0"},
		"local, mirrored":   {`{"repository": "localhost/katbox"}`, "mirror.example.com", "mirror.example.com/katbox:v0.1.0"},
		"port, mirrored":    {`{"repository": "host:5000/a/katbox"}`, "mirror", "mirror/a/katbox:v0.1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			set := one[*appsv1.DaemonSet](t, helm(t, "--set-json", "image="+test.image, "--set", "imageRegistry="+test.registry))
			if got := set.Spec.Template.Spec.Containers[0].Image; got != test.want {
				t.Errorf("the image is %s, want %s", got, test.want)
			}
		})
	}
}

// imagesOf lists those of all pods, with repetitions.
func imagesOf(t *testing.T, objects []*unstructured.Unstructured) (images []string) {
	t.Helper()
	for _, o := range objects {
		path := []string{"spec", "template", "spec", "containers"}
		if o.GetKind() == "Pod" {
			path = []string{"spec", "containers"}
		}
		containers, _, err := unstructured.NestedSlice(o.Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range containers {
			images = append(images, c.(map[string]any)["image"].(string))
		}
	}
	return images
}

// TestAllImagesFromAMirror: one value is enough in a cluster without access to other registries, also for the
// sidecars, whose images can be given in both ways.
func TestAllImagesFromAMirror(t *testing.T) {
	const old = `registry.k8s.io/sig-storage/csi-attacher:v4.0.0`
	for name, args := range map[string][]string{
		"pools":    with("--set", "pools.sidecars.attacher.image="+old),
		"sidecars": {"--set", "sidecars.enabled=true"},
	} {
		direct := imagesOf(t, helm(t, args...))
		mirrored := imagesOf(t, helm(t, append(slices.Clone(args), "--set", "imageRegistry=mirror.example.com")...))
		if len(direct) < 3 {
			t.Errorf("%s: there are only the images %q", name, direct)
		}
		for i, image := range direct {
			first, rest, _ := strings.Cut(image, "/")
			if !strings.Contains(first, ".") || mirrored[i] != "mirror.example.com/"+rest {
				t.Errorf("%s: %s is %s of the mirror", name, image, mirrored[i])
			}
		}
	}
	set := one[*appsv1.DaemonSet](t, helm(t, "--set", "sidecars.enabled=true,sidecars.registrar.image.pullPolicy=Always,"+
		"sidecars.registrar.image.tag=v9,sidecars.livenessProbe.image=registry.example.com/livenessprobe"))
	registrar, probe := set.Spec.Template.Spec.Containers[1], set.Spec.Template.Spec.Containers[2]
	if registrar.ImagePullPolicy != corev1.PullAlways || !strings.HasSuffix(registrar.Image, "csi-node-driver-registrar:v9") ||
		probe.Image != "registry.example.com/livenessprobe" {
		t.Errorf("the sidecars are of %s (%s) and %s", registrar.Image, registrar.ImagePullPolicy, probe.Image)
	}
}

// TestCommonLabels are on all objects and pods, and in no selector: a selector cannot change later.
func TestCommonLabels(t *testing.T) {
	archive := []string{"--set", "archive.enabled=true,archive.bucket.name=evidence,archive.holdNodes=true"}
	plain := keyed(helm(t, with(archive...)...))
	labelled := helm(t, with(append(archive, "--set", "commonLabels.team=storage,commonLabels.release=common",
		"--set", "podLabels.release=own,podMonitor.labels.release=own")...)...)
	acceptAll(t, labelled)
	for name, o := range keyed(labelled) {
		kind := o.GetKind()
		want := "common"
		if kind == "PodMonitor" {
			want = "own"
		}
		if kind != "CustomResourceDefinition" && (o.GetLabels()["team"] != "storage" || o.GetLabels()["release"] != want) {
			t.Errorf("%s has the labels %v", name, o.GetLabels())
		}
		if template, ok, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels"); ok {
			if kind == "DaemonSet" {
				want = "own"
			}
			if template["team"] != "storage" || template["release"] != want {
				t.Errorf("pods of %s have the labels %v", name, template)
			}
		}
		spec, _ := o.Object["spec"].(map[string]any)
		before, _ := plain[name].Object["spec"].(map[string]any)
		for _, field := range []string{"selector", "podSelector", "ingress", "podMetricsEndpoints"} {
			got, _ := json.Marshal(spec[field])
			if want, _ := json.Marshal(before[field]); string(got) != string(want) {
				t.Errorf("%s of %s is %s, without labels it was %s", field, name, got, want)
			}
		}
	}
}

// TestNames: nameOverride is for objects; the labels by which alerts, dashboard and gateway find pods stay.
func TestNames(t *testing.T) {
	for values, want := range map[string]string{
		"nameOverride=scratch":                          "katbox-scratch",
		"nameOverride=box":                              "katbox", // the release is named so already
		"nameOverride=scratch,fullnameOverride=storage": "storage",
	} {
		set := one[*appsv1.DaemonSet](t, helm(t, "--set", values))
		if set.Name != want || set.Spec.Selector.MatchLabels["app.kubernetes.io/name"] != "katbox" {
			t.Errorf("with %s the DaemonSet is %s with the selector %v", values, set.Name, set.Spec.Selector.MatchLabels)
		}
	}
}

// TestServiceAccounts: made by the release or by others, each is the one of its pods, and each right is given to it.
func TestServiceAccounts(t *testing.T) {
	given := func(part, values string) string {
		return part + "serviceAccount." + strings.ReplaceAll(values, ",", ","+part+"serviceAccount.")
	}
	for _, part := range []string{"", "gateway.", "pools."} {
		usual := map[string]string{"": "katbox", "gateway.": "katbox-gateway", "pools.": "katbox-controller"}[part]
		for name, test := range map[string]struct {
			values, want string
			made         bool
		}{
			"usual":     {"create=true", usual, true},
			"named":     {"name=scratch,annotations.a=b", "scratch", true},
			"of others": {"create=false,name=theirs", "theirs", false},
		} {
			t.Run(part+name, func(t *testing.T) {
				objects := helm(t, with("--set", given(part, test.values))...)
				accounts := map[string]*corev1.ServiceAccount{}
				for _, account := range all[*corev1.ServiceAccount](t, objects) {
					accounts[account.Name] = account
				}
				if account := accounts[test.want]; (account != nil) != test.made ||
					account != nil && strings.Contains(test.values, "annotations") && account.Annotations["a"] != "b" {
					t.Errorf("there are %v, want %s: %t", slices.Collect(maps.Keys(accounts)), test.want, test.made)
				}
				used := 0
				for _, o := range objects {
					content, err := o.MarshalJSON()
					if err != nil {
						t.Fatal(err)
					}
					for _, place := range []string{`"serviceAccountName":"` + test.want + `"`, `"kind":"ServiceAccount","name":"` + test.want + `"`,
						`service-account=` + test.want + `"`, `system:serviceaccount:katbox:` + test.want + `'`} {
						used += strings.Count(string(content), place)
					}
					for _, place := range []string{`"serviceAccountName":"`, `"kind":"ServiceAccount","name":"`, `service-account=`} {
						if test.want != usual && strings.Contains(string(content), place+usual+`"`) {
							t.Errorf("%s %s still has the account %s: %s", o.GetKind(), o.GetName(), usual, content)
						}
					}
				}
				// The pods, and each binding: of the daemon also those who know daemons by their account.
				if want := map[string]int{"": 7, "gateway.": 5, "pools.": 7}[part]; used != want {
					t.Errorf("%s is named %d times, want %d", test.want, used, want)
				}
			})
		}
		if _, err := template(with("--set", given(part, "create=false"))...); err == nil ||
			!strings.Contains(err.Error(), part+"serviceAccount.create is false: set "+part+"serviceAccount.name") {
			t.Errorf("%s: an account that has no name: %v", part, err)
		}
	}
}

// TestCSIDriverObject has the labels and annotations of the values. Who may use the volumes is one of its labels.
func TestCSIDriverObject(t *testing.T) {
	const profile = "security.kubernetes.io/csi-ephemeral-volume-profile"
	object := one[*storagev1.CSIDriver](t, helm(t, "--set-json", `csiDriver={"name": "scratch.example.com", "labels": {"`+profile+
		`": "privileged", "team": "storage"}, "annotations": {"a": "b"}}`))
	if object.Name != "scratch.example.com" || object.Labels[profile] != "privileged" || object.Labels["team"] != "storage" ||
		object.Labels["security.openshift.io/csi-ephemeral-volume-profile"] != "restricted" || object.Annotations["a"] != "b" {
		t.Errorf("the object is %+v", object.ObjectMeta)
	}
	for _, value := range []string{"csiDriver.create=false", "createCSIDriver=false"} {
		if drivers := all[*storagev1.CSIDriver](t, helm(t, "--set", value)); len(drivers) > 0 {
			t.Errorf("with %s there is %s", value, drivers[0].Name)
		}
	}
}

// TestSecurityContexts: what a value names replaces what the chart has, and leaves the rest.
func TestSecurityContexts(t *testing.T) {
	objects := helm(t, with("--set-json", `podSecurityContext={"supplementalGroups": [7], "seccompProfile": {"type": "Unconfined"}}`,
		"--set-json", `gateway.podSecurityContext={"runAsNonRoot": false}`, "--set-json", `pools.podSecurityContext={"fsGroup": 7}`,
		"--set", "seLinuxOptions.type=spc_t")...)
	daemon := one[*appsv1.DaemonSet](t, objects).Spec.Template.Spec
	if s := daemon.SecurityContext; !slices.Equal(s.SupplementalGroups, []int64{7}) ||
		s.SeccompProfile.Type != corev1.SeccompProfileTypeUnconfined {
		t.Errorf("the daemon's pod has %+v", s)
	}
	if s := daemon.Containers[0].SecurityContext; s.SELinuxOptions == nil || s.SELinuxOptions.Type != "spc_t" || !*s.Privileged {
		t.Errorf("the daemon has %+v", s)
	}
	gateway := one[*appsv1.Deployment](t, deployments(t, objects, "gateway")).Spec.Template.Spec.SecurityContext
	if *gateway.RunAsNonRoot || gateway.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the gateway's pod has %+v", gateway)
	}
	controller := one[*appsv1.Deployment](t, deployments(t, objects, "controller")).Spec.Template.Spec.SecurityContext
	if !*controller.RunAsNonRoot || *controller.FSGroup != 7 {
		t.Errorf("the controller's pod has %+v", controller)
	}
}

// TestNothingForScanners: all containers drop all capabilities, and all pods have a seccomp profile.
func TestNothingForScanners(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"chart": helm(t, everything...), "sidecars": helm(t, "--set", "sidecars.enabled=true"), "base": kustomize(t, "base"),
		"components": kustomize(t, withAll),
	} {
		var templates []corev1.PodTemplateSpec
		for _, set := range all[*appsv1.DaemonSet](t, objects) {
			templates = append(templates, set.Spec.Template)
		}
		for _, deployment := range all[*appsv1.Deployment](t, objects) {
			templates = append(templates, deployment.Spec.Template)
		}
		for _, template := range templates {
			spec := template.Spec
			if s := spec.SecurityContext; s == nil || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: the pods %v have %+v", name, template.Labels, s)
			}
			for _, c := range spec.Containers {
				if s := c.SecurityContext; s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
					t.Errorf("%s: the container %s has %+v", name, c.Name, s)
				}
			}
		}
	}
}

// TestRevisionHistoryLimit is of all that has revisions; 0 is a limit.
func TestRevisionHistoryLimit(t *testing.T) {
	for value, want := range map[string]int32{"": 10, "0": 0, "3": 3} {
		objects := helm(t, with("--set", "revisionHistoryLimit="+value)...)
		limits := []*int32{one[*appsv1.DaemonSet](t, objects).Spec.RevisionHistoryLimit}
		for _, deployment := range all[*appsv1.Deployment](t, objects) {
			limits = append(limits, deployment.Spec.RevisionHistoryLimit)
		}
		if len(limits) != 3 || slices.ContainsFunc(limits, func(limit *int32) bool { return *limit != want }) {
			t.Errorf("with %q there are %d limits, of which one is not %d", value, len(limits), want)
		}
	}
}

// TestExtraObjects are rendered, also those that are texts with templates.
func TestExtraObjects(t *testing.T) {
	objects := helm(t, "--set-json", `extraObjects=[{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-a"}},
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n  labels:\n    {{- include \"katbox.labels\" . | nindent 4 }}\n"]`)
	maps := all[*corev1.ConfigMap](t, objects)
	if len(maps) != 2 || maps[0].Name != "b" && maps[1].Name != "b" || maps[0].Name != "katbox-a" && maps[1].Name != "katbox-a" {
		t.Fatalf("there are %d ConfigMaps", len(maps))
	}
	for _, m := range maps {
		if m.Name == "b" && !labels.SelectorFromSet(labels.Set{"app.kubernetes.io/instance": "katbox"}).Matches(labels.Set(m.Labels)) {
			t.Errorf("b has the labels %v", m.Labels)
		}
	}
}
