package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
)

// controllers are the ways to install a controller, with the objects of each.
func controllers(t *testing.T) map[string][]*unstructured.Unstructured {
	const enabled = "pools.enabled=true,pools.sidecars.snapshotter.enabled=true"
	return map[string][]*unstructured.Unstructured{
		"overlay":   append(kustomize(t, definitions), kustomize(t, "overlays/with-pools")...),
		"chart":     helm(t, "--set", enabled),
		"OpenShift": helm(t, "--set", enabled, "--api-versions", "security.openshift.io/v1"),
		"renamed": helm(t, "--namespace", "batch", "--set", enabled+",pools.chapNamespace=logins,"+
			"fullnameOverride=a-name-that-is-just-short-enough-for-what-is-added-x"),
	}
}

// TestNoPoolsByDefault: nothing of them is there, and no custom resource is defined.
func TestNoPoolsByDefault(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"base": kustomize(t, "base"), "gateway": kustomize(t, "overlays/with-gateway"), "chart": helm(t, "--set", "gateway.enabled=true"),
	} {
		for _, o := range objects {
			if strings.Contains(o.GetName(), "controller") || o.GetKind() == "CustomResourceDefinition" || o.GetName() == "array.csi.katbox.io" {
				t.Errorf("%s: %s %s is of the pools", name, o.GetKind(), o.GetName())
			}
		}
	}
}

// TestToDeleteTheOverlayDeletesNoPools: "kubectl delete -k" heeds no annotation, and with the definitions
// all volumes would be deleted on the arrays while the controller still runs.
func TestToDeleteTheOverlayDeletesNoPools(t *testing.T) {
	stay := byName(kustomize(t, definitions))
	if len(stay) < 7 || stay["Namespace /katbox-chap"] == nil {
		t.Errorf("only these stay: %v", stay)
	}
	for name := range byName(kustomize(t, "overlays/with-pools")) {
		if stay[name] != nil || strings.HasPrefix(name, "CustomResourceDefinition ") {
			t.Errorf("%s goes with the overlay", name)
		}
	}
}

// TestControllerIsHarmless: the strictest profile admits its pod, none of whose containers writes to its
// root file system. On OpenShift it chooses no user; elsewhere it has to, for the images of the sidecars name none.
func TestControllerIsHarmless(t *testing.T) {
	for name, objects := range controllers(t) {
		template := one[*appsv1.Deployment](t, objects).Spec.Template
		if refused := evaluate(t, api.LevelRestricted, &template.ObjectMeta, &template.Spec); refused != "" {
			t.Errorf("%s: %s", name, refused)
		}
		if chooses := template.Spec.SecurityContext.RunAsUser != nil; chooses == (name == "OpenShift") {
			t.Errorf("%s: it chooses its user: %t", name, chooses)
		}
		for _, c := range template.Spec.Containers {
			if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.RunAsUser != nil {
				t.Errorf("%s: the container %s has %+v", name, c.Name, s)
			}
		}
		for _, v := range template.Spec.Volumes {
			if v.EmptyDir == nil {
				t.Errorf("%s: the volume %s is %+v", name, v.Name, v.VolumeSource)
			}
		}
		set := one[*appsv1.DaemonSet](t, objects)
		if labels.SelectorFromSet(set.Spec.Selector.MatchLabels).Matches(labels.Set(template.Labels)) {
			t.Errorf("%s: the DaemonSet selects the pods %v", name, template.Labels)
		}
		class := template.Spec.PriorityClassName
		quota := func(q *corev1.ResourceQuota) bool {
			return slices.Equal(q.Spec.ScopeSelector.MatchExpressions[0].Values, []string{class})
		}
		if !slices.ContainsFunc(all[*corev1.ResourceQuota](t, objects), quota) {
			t.Errorf("%s: no quota admits pods of the priority class %s", name, class)
		}
	}
}

// TestSidecarsReachTheController at its socket, with a patience that arrays need, and elect no leader of
// their own: that of the controller answers at the socket.
func TestSidecarsReachTheController(t *testing.T) {
	for name, objects := range controllers(t) {
		spec := one[*appsv1.Deployment](t, objects).Spec.Template.Spec
		var names []string
		for _, c := range spec.Containers {
			names = append(names, c.Name)
			flags := flagsOf(c)
			socket := strings.TrimPrefix(flags["--endpoint"]+flags["--csi-address"], "unix://")
			if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].MountPath != filepath.Dir(socket) || socket != "/csi/csi.sock" {
				t.Errorf("%s: the socket of %s is %q, and it has %+v", name, c.Name, socket, c.VolumeMounts)
			}
			if _, elects := flags["--leader-election"]; elects {
				t.Errorf("%s: %s elects a leader", name, c.Name)
			}
			if c.Name != "controller" && (flags["--timeout"] != "180s" || flags["--retry-interval-max"] != "1m" ||
				flags["--kube-api-qps"] != "200") {
				t.Errorf("%s: %s has the flags %v", name, c.Name, flags)
			}
		}
		if want := []string{"controller", "provisioner", "attacher", "resizer", "snapshotter"}; !slices.Equal(names, want) {
			t.Errorf("%s: the containers are %q, want %q", name, names, want)
		}
	}
	detected := func(args ...string) int {
		return len(one[*appsv1.Deployment](t, helm(t, append(args, "--set", "pools.enabled=true")...)).Spec.Template.Spec.Containers)
	}
	if without, with := detected(), detected("--api-versions", "snapshot.storage.k8s.io/v1"); without != 4 || with != 5 {
		t.Errorf("%d containers without VolumeSnapshots, %d with them", without, with)
	}
}

// TestManifestsAndChartHaveTheSameSidecars, of the versions that were tested.
func TestManifestsAndChartHaveTheSameSidecars(t *testing.T) {
	want := []string{"csi-attacher:v4.13.0", "csi-provisioner:v6.4.0", "csi-resizer:v2.3.0", "csi-snapshotter:v8.7.0"}
	for name, objects := range controllers(t) {
		var images []string
		for _, c := range one[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers {
			if image, ok := strings.CutPrefix(c.Image, "registry.k8s.io/sig-storage/"); ok {
				images = append(images, image)
			}
		}
		if slices.Sort(images); !slices.Equal(images, want) {
			t.Errorf("%s: the sidecars are %q, want %q", name, images, want)
		}
	}
}

// TestControllerMayDoNoMore than this, its sidecars included.
func TestControllerMayDoNoMore(t *testing.T) {
	want := []string{
		": events create patch",
		": events list watch create update patch",
		": namespaces get",
		": nodes get list watch",
		": persistentvolumeclaims get list watch",
		": persistentvolumeclaims get list watch update",
		": persistentvolumeclaims/status patch",
		": persistentvolumes get list watch",
		": persistentvolumes get list watch create patch delete",
		": pools.katbox.io poolattachments get list watch create update patch delete",
		": pools.katbox.io poolattachments/status update patch",
		": pools.katbox.io poolclasses get list watch update patch",
		": pools.katbox.io poolclasses/status update patch",
		": pools.katbox.io poolnodes get list watch delete",
		": pools.katbox.io pools get list watch update patch",
		": pools.katbox.io pools/status update patch",
		": pools.katbox.io poolsnapshots get list watch create update patch delete",
		": pools.katbox.io poolsnapshots/status update patch",
		": pools.katbox.io poolvolumes get list watch create update patch delete",
		": pools.katbox.io poolvolumes/status update patch",
		": snapshot.storage.k8s.io volumesnapshotclasses get list watch",
		": snapshot.storage.k8s.io volumesnapshotcontents get list",
		": snapshot.storage.k8s.io volumesnapshotcontents get list watch update patch",
		": snapshot.storage.k8s.io volumesnapshotcontents/status update patch",
		": snapshot.storage.k8s.io volumesnapshots get list watch update",
		": storage.k8s.io csinodes get list watch",
		": storage.k8s.io storageclasses get list watch",
		": storage.k8s.io volumeattachments get list watch patch",
		": storage.k8s.io volumeattachments/status patch",
		": storage.k8s.io volumeattributesclasses get list watch",
		"katbox: coordination.k8s.io leases create",
		"katbox: coordination.k8s.io leases/katbox-controller get update",
		"katbox: secrets get",
		"katbox-chap: secrets get create update delete",
	}
	for name, objects := range controllers(t) {
		if name == "renamed" {
			continue // these are the names of the others
		}
		account := one[*appsv1.Deployment](t, objects).Spec.Template.Spec.ServiceAccountName
		got := rightsOf(t, objects, account)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s: the controller may\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestLoginsHaveANamespaceOfTheirOwn: nodes may read all Secrets of it, so it is not that of the access keys. It
// is kept when the release goes.
func TestLoginsHaveANamespaceOfTheirOwn(t *testing.T) {
	for name, objects := range controllers(t) {
		deployment := one[*appsv1.Deployment](t, objects)
		flags := flagsOf(deployment.Spec.Template.Spec.Containers[0])
		logins := flags["--chap-namespace"]
		if logins == "" || logins == deployment.Namespace {
			t.Errorf("%s: logins are kept in %q", name, logins)
		}
		i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" && o.GetName() == logins })
		if i < 0 || objects[i].GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s: there is no namespace %s that is kept", name, logins)
		}
		roles := all[*rbacv1.Role](t, objects)
		if !slices.ContainsFunc(roles, func(r *rbacv1.Role) bool { return r.Namespace == logins && strings.HasSuffix(r.Name, "-logins") }) {
			t.Errorf("%s: no role is for %s", name, logins)
		}
		lease := slices.ContainsFunc(roles, func(r *rbacv1.Role) bool {
			return slices.ContainsFunc(r.Rules, func(p rbacv1.PolicyRule) bool {
				return slices.Equal(p.ResourceNames, []string{flags["--leader-election-lease"]}) && r.Namespace == deployment.Namespace
			})
		})
		if !lease {
			t.Errorf("%s: it may not keep the lease %q", name, flags["--leader-election-lease"])
		}
	}
	_, err := template("--set", "pools.enabled=true,pools.chapNamespace="+namespace)
	if err == nil || !strings.Contains(err.Error(), "nodes may read all Secrets") {
		t.Errorf("the namespace of the release is taken for logins: %v", err)
	}
}

// TestControllerProbes ask for paths that the controller serves, at a port that it has, and the policy lets
// Prometheus alone reach it.
func TestControllerProbes(t *testing.T) {
	for name, objects := range controllers(t) {
		deployment := one[*appsv1.Deployment](t, objects)
		c := deployment.Spec.Template.Spec.Containers[0]
		if flagsOf(c)["--http-endpoint"] != ":8080" || len(c.Ports) != 1 || c.Ports[0].Name != "metrics" || c.Ports[0].ContainerPort != 8080 {
			t.Errorf("%s: it listens at %v, and has the ports %+v", name, flagsOf(c), c.Ports)
		}
		for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			if probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != "metrics" {
				t.Errorf("%s: the probe of %s is %+v", name, path, probe)
			}
		}
		i := slices.IndexFunc(all[*networkingv1.NetworkPolicy](t, objects), func(p *networkingv1.NetworkPolicy) bool {
			return labels.SelectorFromSet(p.Spec.PodSelector.MatchLabels).Matches(labels.Set(deployment.Spec.Template.Labels)) &&
				len(p.Spec.Ingress) == 1 && p.Spec.Ingress[0].Ports[0].Port.StrVal == "metrics" && len(p.Spec.Ingress[0].From) == 1
		})
		if i < 0 {
			t.Errorf("%s: no policy is for it", name)
		}
	}
}

// TestArrayDriver: its volumes are persistent and attached.
func TestArrayDriver(t *testing.T) {
	for name, objects := range controllers(t) {
		drivers := all[*storagev1.CSIDriver](t, objects)
		i := slices.IndexFunc(drivers, func(d *storagev1.CSIDriver) bool { return d.Name == "array.csi.katbox.io" })
		if len(drivers) != 2 || i < 0 {
			t.Fatalf("%s: the drivers are %v", name, drivers)
		}
		spec := drivers[i].Spec
		persistent := []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
		if !*spec.AttachRequired || !slices.Equal(spec.VolumeLifecycleModes, persistent) ||
			*spec.FSGroupPolicy != storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy {
			t.Errorf("%s: the driver is %+v", name, spec)
		}
	}
}

// TestPodsGoWhereTheDriverIs: the drivers of the pools keep pods off nodes without them, where the API server knows that
// field. One that does not refuses the whole object.
func TestPodsGoWhereTheDriverIs(t *testing.T) {
	at := func(version string, more ...string) []*unstructured.Unstructured {
		return helm(t, append([]string{"--kube-version", version, "--set", "pools.enabled=true", "--set-json", localPools}, more...)...)
	}
	for name, test := range map[string]struct {
		objects []*unstructured.Unstructured
		want    bool
	}{
		"Kubernetes 1.30":         {at("1.30.0"), false},
		"Kubernetes 1.36":         {at("v1.36.9"), false},
		"Kubernetes 1.37":         {at("1.37.0"), true},
		"a provider's 1.37":       {at("v1.37.2-gke.1100"), true},
		"1.37, and it is not had": {at("1.37.0", "--set", "pools.preventPodSchedulingIfMissing=false"), false},
		"overlay":                 {kustomize(t, "overlays/with-local"), false},
		"overlay with component":  {kustomize(t, withPrevention), true},
	} {
		drivers := 0
		for _, o := range test.objects {
			if o.GetKind() != "CSIDriver" {
				continue
			}
			drivers++
			// An inline volume is none that the scheduler looks at.
			want := test.want && o.GetName() != "katbox.csi.paypal.com"
			got, set, err := unstructured.NestedBool(o.Object, "spec", "preventPodSchedulingIfMissing")
			if err != nil || set != want || got != want {
				t.Errorf("%s: %s has %t (%t, %v), want that it is set: %t", name, o.GetName(), got, set, err, want)
			}
		}
		if drivers != 3 {
			t.Errorf("%s: %d drivers, want 3", name, drivers)
		}
	}
}

// TestPoolExamplesAreAccepted: by the rules of the definitions, and each thing that one names is there.
func TestPoolExamplesAreAccepted(t *testing.T) {
	kinds := resourceKinds(t)
	named, uses := map[string]bool{}, map[string]bool{}
	var refers []string
	text := func(o *unstructured.Unstructured, path ...string) string {
		s, _, err := unstructured.NestedString(o.Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, path := range files(t, examples+"/pools/*.yaml") {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range split(t, content) {
			named[o.GetKind()+" "+o.GetName()] = true
			switch o.GroupVersionKind().Group {
			case "snapshot.storage.k8s.io":
			case "pools.katbox.io":
				if err := kinds[o.GetKind()].accept(t, o.Object, nil); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			default:
				object, err := accept(o)
				if err != nil {
					t.Errorf("%s: %v", path, err)
					continue
				}
				refers = append(refers, claimsOf(t, path, object)...)
				if set, ok := object.(*appsv1.StatefulSet); ok {
					uses[string(set.Spec.VolumeClaimTemplates[0].Spec.AccessModes[0])+" "] = true
				}
			}
			switch o.GetKind() {
			case "Pool":
				refers = append(refers, "PoolClass "+text(o, "spec", "className"), "Secret "+text(o, "spec", "vpsa", "credentialsSecretRef", "name"))
			case "StorageClass":
				refers = append(refers, "PoolClass "+text(o, "parameters", "poolClass"))
				if driver := text(o, "provisioner"); driver != "array.csi.katbox.io" && driver != "local.csi.katbox.io" {
					t.Errorf("%s is of %s", o.GetName(), text(o, "provisioner"))
				}
			case "PersistentVolumeClaim":
				refers = append(refers, "StorageClass "+text(o, "spec", "storageClassName"))
				if source := text(o, "spec", "dataSource", "name"); source != "" {
					refers = append(refers, text(o, "spec", "dataSource", "kind")+" "+source)
				}
				modes, _, err := unstructured.NestedStringSlice(o.Object, "spec", "accessModes")
				if err != nil || len(modes) != 1 {
					t.Errorf("%s: the access modes are %q, %v", path, modes, err)
				}
				uses[strings.Join(append(modes, text(o, "spec", "volumeMode")), " ")] = true
			case "VolumeSnapshot":
				refers = append(refers, "VolumeSnapshotClass "+text(o, "spec", "volumeSnapshotClassName"),
					"PersistentVolumeClaim "+text(o, "spec", "source", "persistentVolumeClaimName"))
			}
		}
	}
	for _, name := range refers {
		if !named[name] {
			t.Errorf("there is no %s", name)
		}
	}
	if len(refers) < 20 {
		t.Errorf("the examples name only %q", refers)
	}
	for _, use := range []string{"ReadWriteOnce ", "ReadWriteMany ", "ReadOnlyMany ", "ReadWriteOncePod ", "ReadWriteOnce Block"} {
		if !uses[use] {
			t.Errorf("no example has a claim that is %s", use)
		}
	}
}

// claimsOf returns what the pods of an example name: claims, and the classes of those that they make.
// None of them is more than the profile baseline lets a pod be.
func claimsOf(t *testing.T, path string, object runtime.Object) (names []string) {
	t.Helper()
	var meta metav1.ObjectMeta
	var spec corev1.PodSpec
	switch o := object.(type) {
	case *corev1.Pod:
		meta, spec = o.ObjectMeta, o.Spec
	case *appsv1.Deployment:
		meta, spec = o.Spec.Template.ObjectMeta, o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		meta, spec = o.Spec.Template.ObjectMeta, o.Spec.Template.Spec
		for _, c := range o.Spec.VolumeClaimTemplates {
			names = append(names, "StorageClass "+*c.Spec.StorageClassName)
		}
		names = append(names, "Service "+o.Spec.ServiceName)
	default:
		return nil
	}
	if refused := evaluate(t, api.LevelBaseline, &meta, &spec); refused != "" {
		t.Errorf("%s: %s", path, refused)
	}
	for _, v := range spec.Volumes {
		if e := v.Ephemeral; e != nil {
			names = append(names, "StorageClass "+*e.VolumeClaimTemplate.Spec.StorageClassName)
			continue
		}
		names = append(names, "PersistentVolumeClaim "+v.PersistentVolumeClaim.ClaimName)
	}
	return names
}
