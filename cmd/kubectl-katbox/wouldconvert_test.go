package main

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// podsOfTwoPages are what an API server lists: the second page after the token of the first.
var podsOfTwoPages = []string{`{"metadata": {"continue": "more"}, "items": [{
	"metadata": {"name": "train-x", "namespace": "ci"}, "status": {"phase": "Running"},
	"spec": {"nodeName": "n1", "containers": [{"name": "a"}], "volumes": [
		{"name": "scratch", "emptyDir": {"sizeLimit": "1024Mi"}}, {"name": "shm", "emptyDir": {"medium": "Memory"}},
		{"name": "config", "configMap": {"name": "c"}}, {"name": "my-token", "emptyDir": {}}]}},
	{"metadata": {"name": "ray-w", "namespace": "ci", "labels": {"ray.io/node-type": "worker"}}, "spec": {"containers": [{"name": "a"}]}}
	]}`, `{"metadata": {}, "items": [
	{"metadata": {"name": "agent-1", "namespace": "ci", "ownerReferences": [{"kind": "DaemonSet", "name": "agent"}]},
		"spec": {"containers": [{"name": "a"}], "volumes": [{"name": "run", "emptyDir": {}}]}},
	{"metadata": {"name": "plain", "namespace": "ci"}, "spec": {"containers": [{"name": "a"}]}},
	{"metadata": {"name": "done", "namespace": "ci"}, "spec": {"containers": [{"name": "a"}], "volumes": [{"name": "scratch",
		"csi": {"driver": "katbox.csi.paypal.com", "volumeAttributes": {"converted": "true", "lifespan": "3d"}}}]}}]}`}

// withPods lets the API server answer these paths.
func withPods(objects map[string]string) func(*clustertest.Cluster) {
	return func(c *clustertest.Cluster) {
		c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			path := r.URL.Path
			if strings.HasSuffix(path, "/pods") && r.URL.Query().Get("continue") == "more" {
				path += "?more"
			}
			object, there := objects[path]
			switch {
			case there:
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, object)
			case strings.HasPrefix(path, "/api/v1/namespaces/katbox/"), strings.HasPrefix(path, "/api/v1/namespaces/gone"):
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, `{"kind": "Status", "reason": "NotFound", "message": "not found", "code": 404}`)
			default:
				return false
			}
			return true
		})
	}
}

const manifestsOfAJob = `apiVersion: v1
kind: List
items:
  - {apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly, namespace: gone}, spec: {jobTemplate: {spec: {template: {spec: {
      containers: [{name: a}], volumes: [{name: out, emptyDir: {}}]}}}}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec: {template: {spec: {containers: [{name: a}], volumes: [{name: run, emptyDir: {}}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: kube-system}
spec: {containers: [{name: a}]}
`

func TestWouldConvert(t *testing.T) {
	labelled := `{"metadata": {"labels": {"katbox.io/scratch": "keep"}, "annotations": {"katbox.io/lifespan": "3d"}}}`
	pods := map[string]string{"/api/v1/namespaces/ci/pods": podsOfTwoPages[0], "/api/v1/namespaces/ci/pods?more": podsOfTwoPages[1],
		"/api/v1/pods": podsOfTwoPages[1], "/api/v1/namespaces/ci": labelled,
		"/api/v1/namespaces/katbox/configmaps/katbox-scratch": `{"data": {"preset.ray": "label ray.io/node-type\nmount /tmp/ray"}}`}
	with := func(pairs ...string) map[string]string {
		all := maps.Clone(pods)
		for i := 0; i < len(pairs); i += 2 {
			if all[pairs[i]] = pairs[i+1]; pairs[i+1] == "" {
				delete(all, pairs[i])
			}
		}
		return all
	}
	manifests := filepath.Join(t.TempDir(), "job.yaml")
	must(t, os.WriteFile(manifests, []byte(manifestsOfAJob), 0o600))
	for name, row := range map[string]struct {
		args    string
		objects map[string]string
		code    int
		lines   []string
		says    []string
	}{
		"a namespace": {"", pods, 0, []string{
			"POLICY POD VOLUME WHY, OR WITH WHICH ATTRIBUTES",
			"converts train-x scratch lifespan=3d, sizeLimit=1Gi",
			"leaves train-x shm is in memory or in huge pages, and not on the disk",
			"leaves train-x my-token has secrets, as its name says, and would keep them readable",
			"adds ray-w katbox-tmp-ray at /tmp/ray with lifespan=3d, mode=1777",
			"leaves agent-1 - belongs to a DaemonSet, so its node is fixed, and that may be one without Katbox",
			"leaves plain - has no emptyDir volumes",
			"leaves done scratch is a Katbox volume with lifespan=3d",
		}, nil},
		"all namespaces": {"-A", pods, 0, []string{
			"POLICY NAMESPACE POD VOLUME WHY, OR WITH WHICH ATTRIBUTES",
			"leaves ci agent-1 - belongs to a DaemonSet, so its node is fixed, and that may be one without Katbox",
			"leaves ci plain - has no emptyDir volumes",
			"leaves ci done scratch is a Katbox volume with lifespan=3d",
		}, nil},
		"no label": {"", with("/api/v1/namespaces/ci", `{"metadata": {}}`, "/api/v1/namespaces/ci/pods", podsOfTwoPages[1]), 0, []string{
			"POLICY POD VOLUME WHY, OR WITH WHICH ATTRIBUTES",
			"leaves agent-1 - belongs to a DaemonSet, so its node is fixed, and that may be one without Katbox",
			"leaves plain - has no emptyDir volumes",
			"leaves done scratch is a Katbox volume with lifespan=3d",
		}, []string{"namespace ci has no label katbox.io/scratch=keep. As if it had it:"}},
		"dropped": {"", with("/api/v1/namespaces/ci", `{"metadata": {"labels": {"katbox.io/scratch": "drop"}}}`,
			"/api/v1/namespaces/ci/pods", `{"items": [{"metadata": {"name": "p", "namespace": "ci"}}]}`), 0, []string{
			"POLICY POD VOLUME WHY, OR WITH WHICH ATTRIBUTES", "leaves p - namespace ci has the label katbox.io/scratch=drop",
		}, nil},
		"no policy": {"", with("/api/v1/namespaces/katbox/configmaps/katbox-scratch", "",
			"/api/v1/namespaces/ci/pods", `{"items": []}`), 0, nil, []string{"there is no ConfigMap katbox/katbox-scratch", "no pods"}},
		"parameters of another release": {"--params ci/other", with("/api/v1/namespaces/ci/configmaps/other", `{"data": {"tmp": "true"}}`,
			"/api/v1/namespaces/ci/pods", `{"items": [{"metadata": {"name": "p", "namespace": "ci"}, "spec": {"containers": [{}]}}]}`), 0, []string{
			"POLICY POD VOLUME WHY, OR WITH WHICH ATTRIBUTES", "adds p katbox-tmp at /tmp with lifespan=3d, mode=1777",
		}, nil},
		"no right to list": {"", with("/api/v1/namespaces/ci/pods", ""), 1, nil, []string{"list the pods: ", "forbidden"}},
		"no right to read": {"--params other/x", with("/api/v1/namespaces/ci/pods", `{"items": []}`), 0, nil, []string{
			"you may not read the ConfigMap other/x"}},
		"wrong parameters":  {"--params katbox", pods, verbs.CodeUsage, nil, []string{"--params is NAMESPACE/NAME"}},
		"a file of nothing": {"-f /dev/null", pods, 0, nil, []string{"no pods"}},
		"no file":           {"-f /nowhere", pods, 1, nil, []string{"/nowhere"}},
		"a file": {"-f " + manifests, pods, 0, []string{
			"POLICY NAMESPACE POD VOLUME WHY, OR WITH WHICH ATTRIBUTES",
			"converts gone cronjob/nightly out",
			"leaves ci daemonset/agent - belongs to a DaemonSet, so its node is fixed, and that may be one without Katbox",
			"leaves kube-system p - namespace kube-system is needed before Katbox can run",
		}, []string{"ConfigMap c has no template of pods", "the labels and annotations of namespace gone are not known"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New(t)
			withPods(row.objects)(c)
			code, stdout, stderr := as(t, c, "eve").run(append([]string{"check", "--would-convert"}, strings.Fields(row.args)...)...)
			var lines []string
			for line := range strings.Lines(stdout) {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
			if code != row.code || strings.Join(lines, "\n") != strings.Join(row.lines, "\n") {
				t.Errorf("code %d, %q\n%s", code, stderr, strings.Join(lines, "\n"))
			}
			for _, words := range row.says {
				if !strings.Contains(stderr, words) {
					t.Errorf("%q is not said: %q", words, stderr)
				}
			}
			if len(row.says) == 0 && stderr != "" {
				t.Errorf("says %q", stderr)
			}
		})
	}
}

// TestWouldConvertOfStandardInput: - is the manifests of kustomize or helm.
func TestWouldConvertOfStandardInput(t *testing.T) {
	c := clustertest.New(t)
	withPods(nil)(c)
	t.Setenv("KUBECONFIG", c.Kubeconfig("eve"))
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"kubectl-katbox", "check", "--would-convert", "-f", "-", "-n", "gone"}, strings.NewReader(
		`{"kind": "Pod", "metadata": {"generateName": "p-"},
			"spec": {"containers": [{"name": "a"}], "volumes": [{"name": "w", "emptyDir": {}}]}}`),
		&stdout, &stderr)
	if code != 0 || !strings.Contains(strings.Join(strings.Fields(stdout.String()), " "), "converts gone p- w") {
		t.Errorf("code %d: %s%s", code, stdout.String(), stderr.String())
	}
	if code, _, stderr := as(t, c, "eve").run("check", "-f", "-"); code != verbs.CodeUsage || !strings.Contains(stderr, "--would-convert") {
		t.Errorf("-f alone: %d, %s", code, stderr)
	}
}
