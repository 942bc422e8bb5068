package deploy

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	scheme "k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/yaml"
)

const (
	// withLogs is a kustomization that has the component logs.
	withLogs = "../../.ci/deploy/testdata/logs"
	podLogs  = "pod-logs"
)

// logsOf returns what a DaemonSet has for the logs of pods: flags, mounts and volumes.
func logsOf(set *appsv1.DaemonSet) (flags []string, mounts []corev1.VolumeMount, volumes []corev1.Volume) {
	pod := set.Spec.Template.Spec
	for _, c := range pod.Containers {
		for _, arg := range c.Args {
			if strings.HasPrefix(arg, "--logs") || strings.HasPrefix(arg, "--pod-logs") {
				flags = append(flags, arg)
			}
		}
		for _, m := range c.VolumeMounts {
			if m.Name == podLogs || strings.Contains(m.MountPath, "log") {
				mounts = append(mounts, m)
			}
		}
	}
	for _, v := range pod.Volumes {
		if v.Name == podLogs || v.HostPath != nil && strings.Contains(v.HostPath.Path, "log") {
			volumes = append(volumes, v)
		}
	}
	return flags, mounts, volumes
}

// TestNoLogsByDefault: a daemon that keeps no logs of pods does not see them.
func TestNoLogsByDefault(t *testing.T) {
	rendered := map[string][]*unstructured.Unstructured{}
	for _, dir := range append(slices.Clip(overlays), withAll, withPoolsAndGateway) {
		rendered[dir] = kustomize(t, dir)
	}
	rendered["the chart"] = helm(t)
	rendered["the chart with all else"] = helm(t, with()...)
	rendered["the chart without"] = helm(t, "--set", "logs.enabled=false,logs.limit=1Gi,logs.dir=/data/logs")
	for name, objects := range rendered {
		for _, set := range all[*appsv1.DaemonSet](t, objects) {
			if flags, mounts, volumes := logsOf(set); len(flags)+len(mounts)+len(volumes) > 0 {
				t.Errorf("%s, %s: %v, %v, %v", name, set.Name, flags, mounts, volumes)
			}
		}
	}
	if difference := diff.Diff(rendered["the chart"], rendered["the chart without"]); difference != "" {
		t.Errorf("values about logs that are not kept change something:\n%s", difference)
	}
}

// TestLogsTakeNoRight: with logs each DaemonSet has a flag and a directory, which it cannot write, and nothing else changes.
func TestLogsTakeNoRight(t *testing.T) {
	for name, c := range map[string]struct {
		on, off []*unstructured.Unstructured
		flags   []string
		dir     string
	}{
		"kustomize": {kustomize(t, withLogs), kustomize(t, "base"), []string{"--logs=on"}, "/var/log/pods"},
		"chart":     {helm(t, "--set", "logs.enabled=true"), helm(t), []string{"--logs=on"}, "/var/log/pods"},
		"all values": {helm(t, "--set", "logs.enabled=true,logs.limit=1Gi,logs.dir=/data/logs"), helm(t),
			[]string{"--logs=on", "--logs-limit=1Gi", "--pod-logs-dir=/data/logs"}, "/data/logs"},
		"sets of nodes": {withNodeSets(t, "--set", "logs.enabled=true"), withNodeSets(t), []string{"--logs=on"}, "/var/log/pods"},
	} {
		acceptAll(t, c.on)
		off := byName(c.off)
		for key, object := range byName(c.on) {
			if object.GetKind() != "DaemonSet" {
				if difference := diff.Diff(off[key], object); difference != "" {
					t.Errorf("%s: %s changes:\n%s", name, key, difference)
				}
				continue
			}
			set := one[*appsv1.DaemonSet](t, []*unstructured.Unstructured{object})
			before := one[*appsv1.DaemonSet](t, []*unstructured.Unstructured{off[key]})
			flags, mounts, volumes := logsOf(set)
			if !slices.Equal(flags, c.flags) || len(mounts) != 1 || len(volumes) != 1 || mounts[0].MountPath != c.dir || !mounts[0].ReadOnly ||
				volumes[0].HostPath.Path != c.dir || *volumes[0].HostPath.Type != corev1.HostPathDirectory {
				t.Errorf("%s, %s: %v, %+v, %+v", name, key, flags, mounts, volumes)
			}
			pod := &set.Spec.Template.Spec
			daemon := &pod.Containers[0]
			daemon.Args = slices.DeleteFunc(daemon.Args, func(arg string) bool { return slices.Contains(flags, arg) })
			daemon.VolumeMounts = slices.DeleteFunc(daemon.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == podLogs })
			pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == podLogs })
			if difference := diff.Diff(before, set); difference != "" {
				t.Errorf("%s: %s changes more:\n%s", name, key, difference)
			}
		}
	}
}

// cluster has objects that a chart may look up.
type cluster struct{ dynamic.Interface }

func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	return c.Resource(version.WithResource(strings.ToLower(kind) + "s")), kind != "Namespace", err
}

// TestWhenTheChartKeepsLogs: a new installation does, and an upgrade does where they were kept before.
func TestWhenTheChartKeepsLogs(t *testing.T) {
	chart, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	was := func(args ...string) *unstructured.Unstructured {
		set := find(t, helm(t, args...), "DaemonSet")
		set.SetNamespace(namespace)
		return set
	}
	nodeSets := `nodeSets: [{name: nvme, nodeSelector: {disk: nvme}}, {name: old, nodeSelector: {disk: old}, logs: {enabled: false}}]`
	for name, test := range map[string]struct {
		install bool
		was     *unstructured.Unstructured
		values  string
		want    []string
	}{
		"new":                    {install: true, want: []string{"katbox"}},
		"new, off":               {install: true, values: "logs: {enabled: false}"},
		"new, sets of nodes":     {install: true, values: nodeSets, want: []string{"katbox", "katbox-nvme"}},
		"upgrade":                {was: was()},
		"upgrade, on":            {was: was(), values: "logs: {enabled: true}", want: []string{"katbox"}},
		"upgrade of on":          {was: was("--set", "logs.enabled=true"), want: []string{"katbox"}},
		"upgrade of on, sets":    {was: was("--set", "logs.enabled=true"), values: nodeSets, want: []string{"katbox", "katbox-nvme"}},
		"upgrade of on, off":     {was: was("--set", "logs.enabled=true"), values: "logs: {enabled: false}"},
		"upgrade of nothing":     {},
		"upgrade of old values":  {was: was(), values: "logs: null"},
		"upgrade of another one": {was: was("--set", "fullnameOverride=other,logs.enabled=true")},
	} {
		t.Run(name, func(t *testing.T) {
			there := cluster{fake.NewSimpleDynamicClient(scheme.Scheme)}
			add := func(resource schema.GroupVersionResource, object *unstructured.Unstructured) {
				if _, err := there.Resource(resource).Namespace(object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			add(corev1.SchemeGroupVersion.WithResource("namespaces"), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default"}}})
			if test.was != nil {
				add(appsv1.SchemeGroupVersion.WithResource("daemonsets"), test.was.DeepCopy())
			}
			values := map[string]any{}
			if err := yaml.Unmarshal([]byte(test.values), &values); err != nil {
				t.Fatal(err)
			}
			all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "katbox", Namespace: namespace,
				IsInstall: test.install, IsUpgrade: !test.install}, nil)
			if err != nil {
				t.Fatal(err)
			}
			files, err := engine.RenderWithClientProvider(chart, all, there)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for name, set := range daemonSets(t, split(t, []byte(files["katbox/templates/daemonset.yaml"]))) {
				if flags, _, _ := logsOf(set); len(flags) > 0 {
					got = append(got, name)
				}
			}
			if slices.Sort(got); !slices.Equal(got, test.want) {
				t.Errorf("%q keep logs, want %q", got, test.want)
			}
		})
	}
}
