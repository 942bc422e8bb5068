package deploy

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// TestExamplesAreRestricted: they run in a namespace that enforces the strictest
// profile, so nobody has to give a pod anything for a Katbox volume.
func TestExamplesAreRestricted(t *testing.T) {
	for _, path := range files(t, examples+"/*.yaml") {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range split(t, content) {
			object, err := accept(o)
			if err != nil {
				t.Fatal(err)
			}
			var meta metav1.ObjectMeta
			var spec corev1.PodSpec
			switch o := object.(type) {
			case *corev1.Pod:
				meta, spec = o.ObjectMeta, o.Spec
			case *batchv1.Job:
				meta, spec = o.Spec.Template.ObjectMeta, o.Spec.Template.Spec
			default:
				t.Fatalf("%s has a %T", path, o)
			}
			if refused := evaluate(t, api.LevelRestricted, &meta, &spec); refused != "" {
				t.Errorf("%s: %s", path, refused)
			}
		}
	}
}

// TestNamespaceAdmitsTheDaemon, and a namespace with the profile baseline does not:
// the labels are needed.
func TestNamespaceAdmitsTheDaemon(t *testing.T) {
	for _, dir := range overlays {
		objects := kustomize(t, dir)
		level := api.Level(find(t, objects, "Namespace").GetLabels()[api.EnforceLevelLabel])
		template := daemonSet(t, dir).Spec.Template
		if refused := evaluate(t, level, &template.ObjectMeta, &template.Spec); refused != "" {
			t.Errorf("%s: %s", dir, refused)
		}
		if refused := evaluate(t, api.LevelBaseline, &template.ObjectMeta, &template.Spec); refused == "" {
			t.Errorf("%s: the profile baseline admits the daemon too", dir)
		}
	}
}

// evaluate returns why a pod is refused.
func evaluate(t *testing.T, level api.Level, meta *metav1.ObjectMeta, spec *corev1.PodSpec) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, meta, spec))
	if result.Allowed {
		return ""
	}
	return result.ForbiddenDetail()
}

// TestQuotaAdmitsThePriorityClass: where the API server limits who may have a priority
// class of the system, as on GKE, it makes no pod with one in a namespace without a quota
// for that class.
func TestQuotaAdmitsThePriorityClass(t *testing.T) {
	covered := func(objects []*unstructured.Unstructured, class string) bool {
		for _, o := range objects {
			if o.GetKind() != "ResourceQuota" || o.GetNamespace() != namespace {
				continue
			}
			object, err := accept(o)
			if err != nil {
				t.Fatal(err)
			}
			spec := object.(*corev1.ResourceQuota).Spec
			want := &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{class}}}}
			// A daemon on each of the most nodes that a cluster has, and what others run beside it.
			if pods := spec.Hard[corev1.ResourcePods]; reflect.DeepEqual(spec.ScopeSelector, want) && pods.Value() > 100_000 && len(spec.Hard) == 1 {
				return true
			}
		}
		return false
	}
	for _, dir := range overlays {
		if class := daemonSet(t, dir).Spec.Template.Spec.PriorityClassName; !covered(kustomize(t, dir), class) {
			t.Errorf("%s: no quota admits pods of the priority class %s", dir, class)
		}
	}
	for _, class := range []string{"system-node-critical", "system-cluster-critical", "batch"} {
		if !covered(helm(t, "--set", "priorityClassName="+class), class) {
			t.Errorf("the chart has no quota that admits pods of the priority class %s", class)
		}
	}
	for _, value := range []string{"priorityClassName=", "resourceQuota.enabled=false"} {
		if slices.ContainsFunc(helm(t, "--set", value), func(o *unstructured.Unstructured) bool { return o.GetKind() == "ResourceQuota" }) {
			t.Errorf("with %s the chart has a quota", value)
		}
	}
}

// TestProbes ask for the paths that the daemon serves, at ports that the pod has.
func TestProbes(t *testing.T) {
	for _, dir := range overlays {
		for _, container := range daemonSet(t, dir).Spec.Template.Spec.Containers {
			for probe, want := range map[*corev1.Probe]string{
				container.StartupProbe: "/healthz", container.LivenessProbe: "/healthz", container.ReadinessProbe: "/readyz",
			} {
				switch {
				case container.Name != "katbox":
					if probe != nil {
						t.Errorf("%s: %s has a probe", dir, container.Name)
					}
				case probe == nil:
					t.Errorf("%s: a probe of %s is missing", dir, want)
				case probe.HTTPGet.Path != want:
					t.Errorf("%s: %s is probed, not %s", dir, probe.HTTPGet.Path, want)
				case !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == probe.HTTPGet.Port.StrVal }):
					t.Errorf("%s: no port is named %s", dir, probe.HTTPGet.Port.StrVal)
				}
			}
		}
	}
}

// TestPathsAgree: what the flags say of the container's paths is mounted there, and
// the socket is where the kubelet is told to look for it.
func TestPathsAgree(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"--set", "sidecars.enabled=true"},
		{"--set", "kubeletDir=/data/kubelet,driverName=scratch.example.com"},
		{"--set", "kubeletDir=/data/kubelet,driverName=scratch.example.com,sidecars.enabled=true"},
	} {
		set, err := accept(find(t, helm(t, args...), "DaemonSet"))
		if err != nil {
			t.Fatal(err)
		}
		spec := set.(*appsv1.DaemonSet).Spec.Template.Spec
		hosts := map[string]string{}
		for _, volume := range spec.Volumes {
			hosts[volume.Name] = volume.HostPath.Path
		}
		flags := map[string]string{}
		mounts := map[string]string{}
		for _, container := range spec.Containers {
			for _, arg := range container.Args {
				name, value, _ := strings.Cut(arg, "=")
				flags[name] = value
			}
			for _, mount := range container.VolumeMounts {
				mounts[mount.MountPath] = hosts[mount.Name]
			}
		}
		pods := flags["--kubelet-dir"] + "/pods"
		if mounts[pods] != pods {
			t.Errorf("%v: %s is the host's %s", args, pods, mounts[pods])
		}
		if want := mounts["/csi"] + "/csi.sock"; flags["--kubelet-registration-path"] != want {
			t.Errorf("%v: the kubelet is told %s, and the socket is at %s", args, flags["--kubelet-registration-path"], want)
		}
		if want := flags["--kubelet-dir"] + "/plugins_registry"; mounts["/registration"] != want {
			t.Errorf("%v: /registration is the host's %s, not %s", args, mounts["/registration"], want)
		}
	}
}

// TestValuesReachTheDaemon as flags; a value that is empty leaves the daemon its default.
func TestValuesReachTheDaemon(t *testing.T) {
	flags := func(args ...string) map[string]bool {
		set, err := accept(find(t, helm(t, args...), "DaemonSet"))
		if err != nil {
			t.Fatal(err)
		}
		given := map[string]bool{}
		for _, arg := range set.(*appsv1.DaemonSet).Spec.Template.Spec.Containers[0].Args {
			given[arg] = true
		}
		return given
	}
	defaults := flags()
	for value, want := range map[string]string{
		"keepNoexec=true":                  "--keep-noexec",
		"orphanGrace=1h":                   "--orphan-grace=1h",
		"minLifespan=1d":                   "--min-lifespan=1d",
		"pressureOrder=fair":               "--pressure-order=fair",
		"maxPerOwner.last=5":               "--max-per-owner=0,5",
		"lifespanSucceeded=1h":             "--lifespan-succeeded=1h",
		"maxLifespan=3d":                   "--max-lifespan=3d",
		"releaseGrace=5m":                  "--release-grace=5m",
		"sizeLimit=10Gi":                   "--size-limit=10Gi",
		"inodeLimit=100000":                "--inode-limit=100000",
		"maxSizeLimit=1.5Ti":               "--max-size-limit=1.5Ti",
		"maxInodeLimit=1M":                 "--max-inode-limit=1M",
		"policy.namespaces[0].match[0]=ci": "--policy-file=/etc/katbox/policy.yaml",
		"maxPin=2w":                        "--max-pin=2w",
		"maxPin=0s":                        "--max-pin=0s",
		"maxPinned=2.5%":                   "--max-pinned=2.5%",
		"maxPinned=20Gi":                   "--max-pinned=20Gi",
		"recordSync=0s":                    "--record-sync=0s",
		"recordSyncPatience=1m":            "--record-sync-patience=1m",
		"tombstones=0":                     "--tombstones=0",
		"tombstones=1000000":               "--tombstones=1000000",
		"kubeletLine=none":                 "--kubelet-line=none",
		"kubeletLine=20Gi":                 "--kubelet-line=20Gi",
		`kubeletLine=15%\,5%`:              "--kubelet-line=15%,5%",
		`kubeletLine=20Gi\,2.5%`:           "--kubelet-line=20Gi,2.5%",
		"quota=required":                   "--quota=required",
		"projectIDs=1000+500":              "--project-ids=1000+500",
		"outcomes=off":                     "--outcomes=off",
		"pruneInterval=1s":                 "--pruneinterval=1s",
		"lifespan=7h30m":                   "--afterlifespan=7h30m",
	} {
		if got := flags("--set", value); !got[want] || defaults[want] {
			t.Errorf("with %s the daemon has %v, want %s, which it has not without", value, got, want)
		}
	}
}

// TestDescribeSaysWhyItEnded: the log of a pod that is gone is gone with it, and its
// last words stay with the object as long as that is there.
func TestDescribeSaysWhyItEnded(t *testing.T) {
	for _, dir := range overlays {
		got := daemonSet(t, dir).Spec.Template.Spec.Containers[0].TerminationMessagePolicy
		if got != corev1.TerminationMessageFallbackToLogsOnError {
			t.Errorf("%s: the daemon's termination message is %s", dir, got)
		}
	}
}

// TestOneDaemonOnANode at any time, also in an update.
func TestOneDaemonOnANode(t *testing.T) {
	update := daemonSet(t, "base").Spec.UpdateStrategy
	if update.Type != appsv1.RollingUpdateDaemonSetStrategyType || update.RollingUpdate.MaxSurge.String() != "0" ||
		update.RollingUpdate.MaxUnavailable.String() != "10%" {
		t.Errorf("the update strategy is %v", update)
	}
}

// daemonSet returns what the server makes of it.
func daemonSet(t *testing.T, dir string) *appsv1.DaemonSet {
	t.Helper()
	var object runtime.Object
	object, err := accept(find(t, kustomize(t, dir), "DaemonSet"))
	if err != nil {
		t.Fatal(err)
	}
	return object.(*appsv1.DaemonSet)
}
