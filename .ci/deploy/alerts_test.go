package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// alert is what the tests need of a rule.
type alert struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

// alerts are those of the release, by name.
func alerts(t *testing.T, args ...string) map[string]alert {
	t.Helper()
	return alertsOf(t, find(t, helm(t, append([]string{"--set", "prometheusRule.enabled=true"}, args...)...), "PrometheusRule"))
}

func alertsOf(t *testing.T, object *unstructured.Unstructured) map[string]alert {
	t.Helper()
	var rule struct {
		Spec struct {
			Groups []struct{ Rules []alert }
		}
	}
	content, err := yaml.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &rule); err != nil {
		t.Fatal(err)
	}
	all := map[string]alert{}
	for _, group := range rule.Spec.Groups {
		for _, one := range group.Rules {
			all[one.Alert] = one
		}
	}
	if len(all) < 50 {
		t.Fatalf("there are only %d alerts", len(all))
	}
	return all
}

// TestThresholds are values: each changes the query of one alert, and of no other.
func TestThresholds(t *testing.T) {
	usual := alerts(t)
	for value, want := range map[string][2]string{
		"nodes=0.25":         {"KatboxOnManyNodes", "> 0.25\n"},
		"nodes=0":            {"KatboxOnManyNodes", "> 0\n"},
		"pressureRatio=0.3":  {"KatboxDiskNearlyFull", "< 0.3"},
		"callSeconds=7.5":    {"KatboxCallsSlow", "> 7.5"},
		"commitSeconds=2":    {"KatboxStoreSlow", "> 2"},
		"lateSeconds=300":    {"KatboxDeadlinesLate", "> 300"},
		"brokenPromises=0.5": {"KatboxPromisesBroken", "> 0.5"},
		"trashEntries=5000":  {"KatboxErasingBehind", "> 5000"},
		"certificateDays=3":  {"KatboxGatewayCertificateEnds", "< 3 * 86400"},
	} {
		changed := alerts(t, "--set-json", "prometheusRule.thresholds."+value)
		for name, before := range usual {
			if now := changed[name]; (now.Expr != before.Expr) != (name == want[0]) {
				t.Errorf("with %s the query of %s is %s", value, name, now.Expr)
			}
		}
		if got := changed[want[0]].Expr; !strings.Contains(got, want[1]) {
			t.Errorf("with %s the query of %s is %s, want it to have %s", value, want[0], got, want[1])
		}
	}
}

// TestRunbookURL: a company that has its own documents links to them.
func TestRunbookURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://wiki.example.com/katbox": "https://wiki.example.com/katbox#katboxdown", "": "",
	} {
		for name, one := range alerts(t, "--set", "prometheusRule.runbookURL="+url) {
			want := strings.ReplaceAll(want, "katboxdown", strings.ToLower(name))
			if got, ok := one.Annotations["runbook_url"]; got != want || ok != (url != "") {
				t.Errorf("with %q %s links to %q, want %q", url, name, got, want)
			}
		}
	}
}

// TestMonitoringValues reach the objects of the Prometheus operator and of Grafana.
func TestMonitoringValues(t *testing.T) {
	objects := helm(t, with("--set", "podMonitor.scrapeTimeout=5s",
		"--set", "prometheusRule.alertLabels.team=storage,prometheusRule.alertLabels.severity=none",
		"--set-json", `podMonitor.relabelings=[{"targetLabel": "cluster", "replacement": "a"}]`,
		"--set-json", `podMonitor.metricRelabelings=[{"action": "drop", "sourceLabels": ["__name__"], "regex": "go_.*"}]`,
		"--set", "dashboard.annotations.folder=storage")...)
	monitors := 0
	for _, o := range objects {
		switch o.GetKind() {
		case "PodMonitor":
			monitors++
			endpoints, _, err := unstructured.NestedSlice(o.Object, "spec", "podMetricsEndpoints")
			if err != nil || len(endpoints) != 1 {
				t.Fatalf("%s has %d endpoints (%v)", o.GetName(), len(endpoints), err)
			}
			endpoint := endpoints[0].(map[string]any)
			before, more := endpoint["relabelings"].([]any), endpoint["metricRelabelings"].([]any)
			if endpoint["scrapeTimeout"] != "5s" || endpoint["interval"] != "30s" || len(before) != 2 || len(more) != 1 ||
				before[0].(map[string]any)["targetLabel"] != "instance" || before[1].(map[string]any)["targetLabel"] != "cluster" {
				t.Errorf("%s has %v", o.GetName(), endpoint)
			}
		case "PrometheusRule":
			for name, one := range alertsOf(t, o) {
				if one.Labels["team"] != "storage" || one.Labels["severity"] == "none" {
					t.Errorf("%s has the labels %v", name, one.Labels)
				}
			}
		case "ConfigMap":
			if folder := o.GetAnnotations()["folder"]; (folder == "storage") != strings.HasSuffix(o.GetName(), "-dashboard") {
				t.Errorf("%s is in the folder %q", o.GetName(), folder)
			}
		}
	}
	if monitors != 3 {
		t.Errorf("there are %d PodMonitors", monitors)
	}
}

// TestNotStartingFires for a release of any name: kube-state-metrics says of a pod by which DaemonSet it was made.
func TestNotStartingFires(t *testing.T) {
	promtool, err := filepath.Abs("../../bin/promtool")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"--set", "fullnameOverride=scratch"}, {"--set", "nameOverride=scratch", "--namespace", "batch"}} {
		objects := helm(t, append([]string{"--set", "prometheusRule.enabled=true"}, args...)...)
		spec, err := yaml.Marshal(find(t, objects, "PrometheusRule").Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		set := find(t, objects, "DaemonSet")
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "rules.yaml"), string(spec))
		writeFile(t, filepath.Join(dir, "test.yaml"), strings.NewReplacer("SET", set.GetName(), "NAMESPACE", set.GetNamespace()).Replace(`
rule_files: [rules.yaml]
evaluation_interval: 1m
tests:
  - input_series:
      - series: 'kube_pod_info{namespace="NAMESPACE", pod="p", node="sick", created_by_kind="DaemonSet", created_by_name="SET"}'
        values: '1x40'
      - {series: 'kube_pod_status_phase{namespace="NAMESPACE", pod="p", phase="Pending"}', values: '1x40'}
      - series: 'kube_pod_info{namespace="NAMESPACE", pod="q", node="well", created_by_kind="DaemonSet", created_by_name="SET-not"}'
        values: '1x40'
      - {series: 'kube_pod_status_phase{namespace="NAMESPACE", pod="q", phase="Pending"}', values: '1x40'}
    promql_expr_test:
      - expr: 'count by (node) (ALERTS{alertname="KatboxNotStarting",alertstate="firing"})'
        eval_time: 20m
        exp_samples: [{labels: '{node="sick"}', value: 1}]
`))
		if out, err := exec.Command(promtool, "test", "rules", filepath.Join(dir, "test.yaml")).CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
