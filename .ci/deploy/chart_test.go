package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/yaml"
)

// TestChartEqualsManifests: object by object, but for the labels that only Helm
// needs, and the namespace, which has to be there before a release.
func TestChartEqualsManifests(t *testing.T) {
	// The manifests of the pools are for every version of Kubernetes, but for those with the component prevent-scheduling.
	const before = "1.36.0"
	local := []string{"--set", "pools.enabled=true,pools.sidecars.snapshotter.enabled=true", "--set-json", localPools}
	for dir, args := range map[string][]string{
		"base":                  nil,
		"overlays/sidecars":     {"--set", "sidecars.enabled=true"},
		withPolicy:              {"--set", "sidecars.enabled=true,networkPolicy.enabled=true"},
		"overlays/data-disk":    {"--set", "workdir.hostPath=/mnt/katbox/data,workdir.type=Directory"},
		"overlays/with-gateway": {"--set", "gateway.enabled=true"},
		withHostNetwork:         {"--set", "gateway.enabled=true,gateway.hostNetwork=true"},
		"overlays/with-pools":   {"--kube-version", before, "--set", "pools.enabled=true,pools.sidecars.snapshotter.enabled=true"},
		"overlays/with-local":   append([]string{"--kube-version", before}, local...),
		withPrevention:          local,
		withAdmission:           {"--set", "admissionPolicy.enabled=true"},
		withOptIn:               {"--set", "optIn.enabled=true"},
		withLogs:                {"--set", "logs.enabled=true"},
		withHolds:               {"--set", held},
		withFile: {"--set", "gateway.enabled=true", "--set-json",
			`policy={"namespaces": [{"match": ["ci", "team-*"], "lifespan": "3d"}]}`},
		withPoolsAndGateway: {"--kube-version", before,
			"--set", "pools.enabled=true,pools.sidecars.snapshotter.enabled=true,gateway.enabled=true," +
				"workdir.hostPath=/mnt/katbox/data,workdir.type=Directory,pools.node.storageNetwork=10.9.0.0/16",
			"--set-json", `policy={"namespaces": []}`},
		withAll: {"--set", "sidecars.enabled=true,networkPolicy.enabled=true,gateway.enabled=true"},
	} {
		t.Run(dir, func(t *testing.T) {
			objects := kustomize(t, dir)
			if dir == "overlays/with-pools" || dir == "overlays/with-local" || dir == withPoolsAndGateway || dir == withPrevention {
				objects = append(objects, kustomize(t, definitions)...)
			}
			want, got := byName(objects), byName(withoutHooks(helm(t, args...)))
			delete(want, "Namespace /katbox")
			for name, object := range want {
				if got[name] == nil {
					t.Errorf("the chart has no %s", name)
				} else if difference := diff.Diff(object.Object, got[name].Object); difference != "" {
					t.Errorf("%s differs between manifests (-) and chart (+):\n%s", name, difference)
				}
				delete(got, name)
			}
			for name := range got {
				t.Errorf("only the chart has %s", name)
			}
		})
	}
}

// byName keys objects by kind, namespace and name, without Helm's labels.
func byName(objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	named := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		named[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o
		o.Object = withoutHelm(o.Object).(map[string]any)
	}
	return named
}

// withoutHooks returns the objects that an installation makes; those for "helm test", and for its end, come later.
func withoutHooks(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetAnnotations()["helm.sh/hook"] != "" })
}

// withoutHelm returns a part of an object without Helm's labels, in whatever map or selector they are.
func withoutHelm(part any) any {
	switch part := part.(type) {
	case map[string]any:
		for _, label := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by",
			"helm.sh/chart"} {
			delete(part, label)
		}
		for key, value := range part {
			part[key] = withoutHelm(value)
		}
	case []any:
		for i, value := range part {
			part[i] = withoutHelm(value)
		}
	case string:
		return strings.TrimSuffix(part, ",app.kubernetes.io/instance=katbox")
	}
	return part
}

// TestSchemaRefuses what is in testdata/refused, with an error that names the value.
// The first line of each file says which words the error has to have.
func TestSchemaRefuses(t *testing.T) {
	for _, path := range files(t, "testdata/refused/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(content), "\n")
			want, ok := strings.CutPrefix(first, "# error: ")
			if !ok {
				t.Fatalf("the first line has to be \"# error: WORDS\", not %q", first)
			}
			_, err = template("--values", path)
			if err == nil || !strings.Contains(err.Error(), "values don't meet the specifications") || !strings.Contains(err.Error(), want) {
				t.Errorf("want a refusal by the schema with %q, got %v", want, err)
			}
		})
	}
}

// TestDurations are those of Go or of Prometheus, as the daemon takes them; the operator takes only
// those of Prometheus.
func TestDurations(t *testing.T) {
	const goAlone, both, neither = 1, 2, 0
	for duration, kind := range map[string]int{
		"12h": both, "1h30m": both, "0s": both, "7d": both, "2w": both, "1y": both, "1d12h": both, "1w2d3h4m5s6ms": both,
		"1.5h": goAlone, "30m1h": goAlone, "300us": goAlone, "2.5s": goAlone,
		"": neither, "7": neither, "d": neither, "7D": neither, "7days": neither, "1 d": neither, "-1h": neither, "12h1d": neither,
		"1d1.5h": neither, "1.5d": neither, "7d ": neither, "1w,2d": neither,
	} {
		accepts := map[string]bool{
			"lifespan":            kind != neither,
			"orphanGrace":         kind != neither || duration == "",
			"minLifespan":         kind != neither || duration == "",
			"lifespanSucceeded":   kind != neither || duration == "",
			"maxLifespan":         kind != neither || duration == "",
			"releaseGrace":        kind != neither || duration == "",
			"maxPin":              kind != neither || duration == "",
			"pruneInterval":       kind != neither || duration == "",
			"podMonitor.interval": kind == both,
		}
		var args []string
		for value := range accepts {
			args = append(args, "--set-string", value+"="+strings.ReplaceAll(duration, ",", "\\,"))
		}
		_, err := template(args...)
		if kind == both && err != nil {
			t.Errorf("%q: %v", duration, err)
		}
		for value, accepted := range accepts {
			refused := err != nil && strings.Contains(err.Error(), "at '/"+strings.ReplaceAll(value, ".", "/")+"'")
			if accepted == refused {
				t.Errorf("%s: %q: %v, want it accepted: %t", value, duration, err, accepted)
			}
		}
	}
}

// TestLint: helm has nothing to say.
func TestLint(t *testing.T) {
	for _, path := range append(files(t, "testdata/accepted/*.yaml"), valuesOfBefore...) {
		said, err := output("helm", "lint", "--strict", "--kube-version", kubernetes, "--values", path, chart)
		if err != nil {
			t.Error(err)
		} else if strings.Contains(string(said), "[") {
			t.Errorf("%s: %s", path, said)
		}
	}
}

// TestEveryValueIsExplained by a comment above it, also the nested ones.
func TestEveryValueIsExplained(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(content, &values); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(content), "\n")
	for i, line := range lines {
		key, rest, ok := strings.Cut(line, ":")
		// Of a mapping with nested values, as "image:", the values are explained.
		nested := ok && rest == "" && nests(lines[i+1:])
		indent := len(key) - len(strings.TrimLeft(key, " "))
		if !ok || strings.HasPrefix(strings.TrimSpace(key), "#") || strings.HasPrefix(strings.TrimSpace(key), "-") || nested ||
			within(lines[:i], indent) {
			continue
		}
		if !explained(lines[:i]) {
			t.Errorf("values.yaml:%d: %s has no comment above it that begins with \"# -- \"", i+1, strings.TrimSpace(key))
		}
	}
	if len(values) < 20 {
		t.Errorf("there are only %d values", len(values))
	}
}

// nests reports whether these lines begin with a value that is explained, or with a mapping that does.
func nests(lines []string) bool {
	first := strings.TrimSpace(lines[0])
	return strings.HasPrefix(first, "# -- ") || strings.HasSuffix(first, ":") && !strings.HasPrefix(first, "#") && nests(lines[1:])
}

// within reports whether a line with that indent, after these lines, is part of a
// value that is explained as a whole.
func within(before []string, indent int) bool {
	for i := len(before) - 1; i > 0 && indent > 0; i-- {
		line := strings.TrimLeft(before[i], " ")
		if depth := len(before[i]) - len(line); line != "" && !strings.HasPrefix(line, "#") && depth < indent {
			if explained(before[:i]) {
				return true
			}
			indent = depth
		}
	}
	return false
}

// explained reports whether these lines end with a comment that explains a value.
func explained(before []string) bool {
	for _, line := range slices.Backward(before) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#") || strings.HasPrefix(line, "# -- ") {
			return strings.HasPrefix(line, "# -- ")
		}
	}
	return false
}

// TestVersions: one version names the chart, the daemon and the manifests' image.
func TestVersions(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var about struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(content, &about); err != nil {
		t.Fatal(err)
	}
	if about.AppVersion != "v"+about.Version {
		t.Errorf("the chart %s is of the version %s", about.Version, about.AppVersion)
	}
	// That the manifests have it too is in TestChartEqualsManifests.
}

// TestMonitoringIsCopied: Helm reads only what is in the chart.
func TestMonitoringIsCopied(t *testing.T) {
	for _, name := range []string{"rules.yaml", "dashboard.json"} {
		want, err := os.ReadFile(filepath.Join("../../deploy/monitoring", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(chart, "files", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("the chart's files/%s differs from deploy/monitoring/%s: run make generate", name, name)
		}
	}
}

// TestMonitoringIsRendered as it is, whatever braces are in it.
func TestMonitoringIsRendered(t *testing.T) {
	objects := helm(t, "--set", "prometheusRule.enabled=true,dashboard.enabled=true")
	content, err := os.ReadFile(filepath.Join(chart, "files/rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules map[string]any
	if err := yaml.Unmarshal(content, &rules); err != nil {
		t.Fatal(err)
	}
	if difference := diff.Diff(rules, find(t, objects, "PrometheusRule").Object["spec"]); difference != "" {
		t.Errorf("the rules (-) differ from what is rendered (+):\n%s", difference)
	}
	dashboard, err := os.ReadFile(filepath.Join(chart, "files/dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	rendered, _, err := unstructured.NestedString(find(t, objects, "ConfigMap").Object, "data", "katbox.json")
	if err != nil || rendered != string(dashboard) {
		t.Errorf("the ConfigMap has another dashboard, %d bytes rather than %d (%v)", len(rendered), len(dashboard), err)
	}
}

// TestRulesFollowTheRelease: they know its DaemonSet by name, and tell people where to look.
func TestRulesFollowTheRelease(t *testing.T) {
	objects := helm(t, "--namespace", "batch", "--set", "fullnameOverride=scratch,prometheusRule.enabled=true")
	set := find(t, objects, "DaemonSet")
	if set.GetName() != "scratch" || set.GetNamespace() != "batch" {
		t.Fatalf("the DaemonSet is %s in %s", set.GetName(), set.GetNamespace())
	}
	text := func(objects []*unstructured.Unstructured) string {
		spec, err := yaml.Marshal(find(t, objects, "PrometheusRule").Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(spec)), " ") // long lines are broken anywhere
	}
	changes := []string{`created_by_name="katbox"`, `created_by_name="scratch"`, "DaemonSet katbox", "DaemonSet scratch",
		"Deployment katbox-gateway", "Deployment scratch-gateway",
		"Deployment katbox-controller", "Deployment scratch-controller",
		"namespace katbox", "namespace batch"}
	want, got := text(helm(t, "--set", "prometheusRule.enabled=true")), text(objects)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(want, changes[i]) {
			t.Errorf("no rule has %s", changes[i])
		}
		want = strings.ReplaceAll(want, changes[i], changes[i+1])
	}
	if got != want {
		t.Errorf("the rules are\n%s\nwant\n%s", got, want)
	}
}
