package deploy

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/pod-security-admission/api"
)

// localPools is the value of the chart that says what overlays/with-local does.
const localPools = `localPools=[{"poolClass": "nvme", "path": "/var/lib/katbox-pools/nvme"}]`

// locals are the ways to install pools on the nodes' disks, with the objects of each.
func locals(t *testing.T) map[string][]*unstructured.Unstructured {
	enabled := []string{"--set", "pools.enabled=true,pools.sidecars.snapshotter.enabled=true", "--set-json", localPools}
	return map[string][]*unstructured.Unstructured{
		"overlay":   append(kustomize(t, definitions), kustomize(t, "overlays/with-local")...),
		"chart":     helm(t, enabled...),
		"OpenShift": helm(t, append(slices.Clip(enabled), "--api-versions", "security.openshift.io/v1")...),
		"renamed": helm(t, append(slices.Clip(enabled), "--namespace", "batch", "--set", "kubeletDir=/data/kubelet,gateway.enabled=true,"+
			"fullnameOverride=a-name-that-is-just-short-enough-for-what-is-added-x")...),
	}
}

// TestNoLocalPoolsByDefault: with pools on arrays alone nothing of them is there.
func TestNoLocalPoolsByDefault(t *testing.T) {
	for name, objects := range controllers(t) {
		for _, o := range objects {
			text, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"local.csi.katbox.io", "--local-", "--nodes-", "--controller=", "tokenreviews"} {
				if o.GetKind() != "CustomResourceDefinition" && strings.Contains(string(text), word) {
					t.Errorf("%s: %s %s has %s", name, o.GetKind(), o.GetName(), word)
				}
			}
		}
	}
	if _, err := template("--set-json", localPools); err == nil || !strings.Contains(err.Error(), "needs pools.enabled=true") {
		t.Errorf("pools on nodes without the controller: %v", err)
	}
}

// TestLocalDriver: its volumes are persistent, nothing attaches them, and the scheduler knows how much room there is.
func TestLocalDriver(t *testing.T) {
	for name, objects := range locals(t) {
		drivers := all[*storagev1.CSIDriver](t, objects)
		i := slices.IndexFunc(drivers, func(d *storagev1.CSIDriver) bool { return d.Name == "local.csi.katbox.io" })
		if len(drivers) != 3 || i < 0 {
			t.Fatalf("%s: the drivers are %v", name, drivers)
		}
		spec := drivers[i].Spec
		if *spec.AttachRequired || !*spec.StorageCapacity || *spec.FSGroupPolicy != storagev1.FileFSGroupPolicy ||
			!slices.Equal(spec.VolumeLifecycleModes, []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}) {
			t.Errorf("%s: the driver is %+v", name, spec)
		}
	}
}

// TestLocalSidecars reach the second driver at a socket of its own, and tell it which node the scheduler has chosen.
func TestLocalSidecars(t *testing.T) {
	for name, objects := range locals(t) {
		template := one[*appsv1.Deployment](t, deployments(t, objects, "controller")).Spec.Template
		if refused := evaluate(t, api.LevelRestricted, &template.ObjectMeta, &template.Spec); refused != "" {
			t.Errorf("%s: %s", name, refused)
		}
		containers := map[string]corev1.Container{}
		var names []string
		for _, c := range template.Spec.Containers {
			containers[c.Name] = c
			names = append(names, c.Name)
		}
		want := []string{"controller", "provisioner", "attacher", "resizer", "snapshotter", "local-provisioner", "local-resizer",
			"local-snapshotter"}
		if !slices.Equal(names, want) {
			t.Fatalf("%s: the containers are %q, want %q", name, names, want)
		}
		socket := strings.TrimPrefix(flagsOf(containers["controller"])["--local-endpoint"], "unix://")
		for _, c := range want[5:] {
			flags, other := flagsOf(containers[c]), flagsOf(containers[strings.TrimPrefix(c, "local-")])
			if flags["--csi-address"] != socket || flags["--csi-address"] == other["--csi-address"] ||
				containers[c].VolumeMounts[0].MountPath != filepath.Dir(socket) {
				t.Errorf("%s: %s asks at %q, the controller answers at %q", name, c, flags["--csi-address"], socket)
			}
			for flag, value := range other {
				if flag != "--csi-address" && flags[flag] != value {
					t.Errorf("%s: %s has %s=%s, the one for arrays %q", name, c, flag, flags[flag], value)
				}
			}
			if containers[c].Image != containers[strings.TrimPrefix(c, "local-")].Image {
				t.Errorf("%s: %s is of the image %s", name, c, containers[c].Image)
			}
		}
		flags := flagsOf(containers["local-provisioner"])
		for flag, value := range map[string]string{
			"--strict-topology": "true", "--immediate-topology": "false", "--enable-capacity": "true", "--capacity-ownerref-level": "2",
		} {
			if flags[flag] != value {
				t.Errorf("%s: %s is %q, want %s", name, flag, flags[flag], value)
			}
		}
		fields := map[string]string{}
		for _, e := range containers["local-provisioner"].Env {
			fields[e.Name] = e.ValueFrom.FieldRef.FieldPath
		}
		// By these it finds the Deployment.
		if !maps.Equal(fields, map[string]string{"NAMESPACE": "metadata.namespace", "POD_NAME": "metadata.name"}) {
			t.Errorf("%s: the provisioner has %v", name, fields)
		}
	}
}

// TestDaemonReachesTheController by a Service that selects it, with a token for it alone, and trusts the CA that the
// controller publishes.
func TestDaemonReachesTheController(t *testing.T) {
	for name, objects := range locals(t) {
		set, deployment := one[*appsv1.DaemonSet](t, objects), one[*appsv1.Deployment](t, deployments(t, objects, "controller"))
		daemon, controller := flagsOf(set.Spec.Template.Spec.Containers[0]), flagsOf(deployment.Spec.Template.Spec.Containers[0])
		services := slices.DeleteFunc(all[*corev1.Service](t, objects), func(s *corev1.Service) bool {
			return s.Name != controller["--nodes-service"]
		})
		if len(services) != 1 {
			t.Fatalf("%s: there are %d Services %q", name, len(services), controller["--nodes-service"])
		}
		service := services[0]
		port := deployment.Spec.Template.Spec.Containers[0].Ports[1]
		if service.Spec.ClusterIP != corev1.ClusterIPNone || !service.Spec.PublishNotReadyAddresses ||
			!labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(deployment.Spec.Template.Labels)) ||
			service.Spec.Ports[0].TargetPort.StrVal != port.Name || service.Spec.Ports[0].Port != port.ContainerPort ||
			port.ContainerPort != 9444 || controller["--nodes-endpoint"] != ":9444" {
			t.Errorf("%s: the Service is %+v, the port %+v", name, service.Spec, port)
		}
		if want := service.Name + "." + service.Namespace + ".svc:9444"; daemon["--controller"] != want {
			t.Errorf("%s: the daemon connects to %q, want %q", name, daemon["--controller"], want)
		}
		if controller["--nodes-service-account"] != set.Spec.Template.Spec.ServiceAccountName {
			t.Errorf("%s: the controller lets in %q", name, controller["--nodes-service-account"])
		}
		chosen, err := labels.Parse(strings.TrimPrefix(slices.DeleteFunc(slices.Clone(deployment.Spec.Template.Spec.Containers[0].Args),
			func(arg string) bool { return !strings.HasPrefix(arg, "--nodes-selector=") })[0], "--nodes-selector="))
		if err != nil || !chosen.Matches(labels.Set(set.Spec.Template.Labels)) || chosen.Matches(labels.Set(deployment.Spec.Template.Labels)) {
			t.Errorf("%s: the daemons are told by %v, %v", name, chosen, err)
		}
		i := slices.IndexFunc(set.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "controller" })
		for _, source := range projected(set.Spec.Template.Spec.Volumes[i]) {
			if token := source.ServiceAccountToken; token != nil && (token.Audience != "katbox-controller" || token.Path != "token") {
				t.Errorf("%s: the token is %+v", name, token)
			}
			if ca := source.ConfigMap; ca != nil && (ca.Name != controller["--nodes-ca-configmap"] || !*ca.Optional ||
				ca.Items[0].Path != "ca.crt") {
				t.Errorf("%s: the CA is in %+v", name, ca)
			}
		}
		for kind, shipped := range map[string]bool{
			"ConfigMap": slices.ContainsFunc(all[*corev1.ConfigMap](t, objects), func(o *corev1.ConfigMap) bool {
				return o.Name == controller["--nodes-ca-configmap"] && len(o.Data) == 0
			}),
			"Secret": slices.ContainsFunc(all[*corev1.Secret](t, objects), func(o *corev1.Secret) bool {
				return o.Name == controller["--nodes-cert-secret"] && len(o.Data) == 0
			}),
		} {
			if !shipped {
				t.Errorf("%s: the %s that the controller fills is not there, or not empty", name, kind)
			}
		}
		open := slices.ContainsFunc(all[*networkingv1.NetworkPolicy](t, objects), func(p *networkingv1.NetworkPolicy) bool {
			return labels.SelectorFromSet(p.Spec.PodSelector.MatchLabels).Matches(labels.Set(deployment.Spec.Template.Labels)) &&
				slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
					return r.Ports[0].Port.StrVal == "nodes" && len(r.From) == 0
				})
		})
		if !open {
			t.Errorf("%s: no daemon reaches the controller", name)
		}
	}
}

// TestDaemonOfLocalPools sees the directories above its pools, also what is mounted there later, and never makes them.
func TestDaemonOfLocalPools(t *testing.T) {
	all := locals(t)
	all["several"] = helm(t, "--values", "testdata/accepted/pools-local.yaml")
	want := map[string][]string{
		"several": {"nvme=/var/lib/katbox-pools/nvme", "bulk.example.com=/srv/disks/hdd0,backend=image,on-root-disk"},
	}
	for name, objects := range all {
		spec := one[*appsv1.DaemonSet](t, objects).Spec.Template.Spec
		daemon := spec.Containers[0]
		flags, volumes := flagsOf(daemon), map[string]corev1.Volume{}
		for _, v := range spec.Volumes {
			volumes[v.Name] = v
		}
		mounts := map[string]corev1.VolumeMount{}
		for _, m := range daemon.VolumeMounts {
			mounts[m.MountPath] = m
		}
		socket := volumes[mounts["/local"].Name].HostPath
		if flags["--local-endpoint"] != "unix:///local/csi.sock" || flags["--local-kubelet-registration-path"] != socket.Path+"/csi.sock" ||
			socket.Path != flags["--kubelet-dir"]+"/plugins/local.csi.katbox.io" {
			t.Errorf("%s: the socket is at %+v, the flags are %v", name, socket, flags)
		}
		var pools []string
		for _, arg := range daemon.Args {
			pool, ok := strings.CutPrefix(arg, "--local-pool=")
			if !ok {
				continue
			}
			pools = append(pools, pool)
			_, path, _ := strings.Cut(pool, "=")
			path, _, _ = strings.Cut(path, ",")
			above := mounts[filepath.Dir(path)]
			host := volumes[above.Name].HostPath
			if host == nil || host.Path != filepath.Dir(path) || *host.Type != corev1.HostPathDirectory || above.MountPropagation == nil ||
				*above.MountPropagation != corev1.MountPropagationHostToContainer {
				t.Errorf("%s: above %s is %+v of %+v", name, path, above, host)
			}
		}
		if w := want[name]; w == nil && !slices.Equal(pools, []string{"nvme=/var/lib/katbox-pools/nvme"}) || w != nil && !slices.Equal(pools, w) {
			t.Errorf("%s: the pools are %q", name, pools)
		}
	}
}

// TestControllerOfLocalPoolsMayDoNoMore than this, beside what it may do for arrays.
func TestControllerOfLocalPoolsMayDoNoMore(t *testing.T) {
	want := []string{
		": authentication.k8s.io tokenreviews create",
		": nodes get list watch patch",
		": persistentvolumeclaims patch",
		": pools.katbox.io pools create",
		"katbox: apps replicasets get",
		"katbox: configmaps/katbox-controller-ca get update",
		"katbox: pods get list watch",
		"katbox: secrets/katbox-controller-tls get update",
		"katbox: storage.k8s.io csistoragecapacities get list watch create update patch delete",
	}
	arrays := rightsOf(t, controllers(t)["overlay"], "katbox-controller")
	for name, objects := range locals(t) {
		if name == "renamed" {
			continue // these are the names of the others
		}
		got := slices.DeleteFunc(rightsOf(t, objects, "katbox-controller"), func(r string) bool { return slices.Contains(arrays, r) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: it may\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	daemon := rightsOf(t, locals(t)["overlay"], "katbox")
	if before := rightsOf(t, controllers(t)["overlay"], "katbox"); !slices.Equal(daemon, before) {
		t.Errorf("the daemon may\n%s\nwithout local pools\n%s", strings.Join(daemon, "\n"), strings.Join(before, "\n"))
	}
}
