package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/node/policy"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

// TestDebugDryRun: the pod is where the volume is, has it read-only, and runs as the user that is given.
func TestDebugDryRun(t *testing.T) {
	c, names := nightly(t)
	for _, output := range []string{"yaml", "json"} {
		code, stdout, stderr := as(t, c, "eve").run("debug", names[0], "--dry-run=client", "-o", output,
			"--run-as", "1000:2000", "--for", "90m", "--image", "tools:1")
		if code != 0 || stderr != "" {
			t.Fatalf("code %d, %q", code, stderr)
		}
		var pod cluster.Pod
		if err := yaml.Unmarshal([]byte(stdout), &pod); err != nil { // JSON is YAML
			t.Fatal(err)
		}
		at := func(path ...any) any { return look(t, pod.Spec, path...) }
		for _, row := range []struct{ got, want any }{
			{at("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", 0,
				"matchFields", 0, "values"), []any{"n1"}},
			{at("securityContext", "runAsUser"), 1000.}, {at("securityContext", "runAsGroup"), 2000.}, {at("securityContext", "runAsNonRoot"), true},
			{at("activeDeadlineSeconds"), 5400.}, {at("containers", 0, "image"), "tools:1"},
			{at("containers", 0, "command"), []any{"sleep", "5400"}},
			{at("containers", 0, "securityContext", "capabilities", "drop"), []any{"ALL"}},
			{at("containers", 0, "volumeMounts", 0, "readOnly"), true}, {at("volumes", 0, "csi", "readOnly"), true},
			{at("automountServiceAccountToken"), false}, {pod.Metadata.Namespace, "ci"}, {pod.Metadata.GenerateName, "katbox-debug-"},
		} {
			if !reflect.DeepEqual(row.got, row.want) {
				t.Errorf("%v, want %v in\n%s", row.got, row.want, stdout)
			}
		}
		attributes := map[string]string{}
		for key, value := range at("volumes", 0, "csi", "volumeAttributes").(map[string]any) {
			attributes[key] = value.(string)
		}
		if place, err := policy.Attach(attributes, true); err != nil || place.ID == "" {
			t.Errorf("the driver takes %v for %v, %v", attributes, place, err)
		}
	}
	for _, request := range c.Requests() {
		if strings.Contains(request, " POST ") {
			t.Errorf("a dry run sent %s", request)
		}
	}
}

// look follows keys and indexes in what JSON has become.
func look(t *testing.T, from any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := from.(map[string]any)
			from = m[step]
		case int:
			list, _ := from.([]any)
			if step >= len(list) {
				t.Fatalf("%v has no element %d", from, step)
			}
			from = list[step]
		}
	}
	return from
}

// TestDebug: the pod is made with the user's credentials, as the user that wrote, and waited for.
func TestDebug(t *testing.T) {
	c, names := nightly(t)
	var looks atomic.Int32
	made := make(chan cluster.Pod, 1)
	c.Intercept(pods(t, made, func() string {
		if looks.Add(1) == 1 {
			return `{"phase":"Pending"}`
		}
		return `{"phase":"Running","containerStatuses":[{"state":{"running":{}}}]}`
	}))
	code, stdout, stderr := as(t, c, "eve").run("debug", names[0])
	if code != 0 || stdout != "kubectl exec -it -n ci katbox-debug-abc12 -- sh\nkubectl delete pod -n ci katbox-debug-abc12\n" ||
		!strings.HasPrefix(stderr, "made pod katbox-debug-abc12\nit has volume scratch of pod ci/nightly-") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	if pod := <-made; look(t, pod.Spec, "securityContext", "runAsUser") != float64(os.Getuid()) {
		t.Errorf("%+v does not run as %d, who wrote the files", pod.Spec, os.Getuid())
	}
}

// pods plays the pods of an API server: POST makes one, GET returns it with a status.
func pods(t *testing.T, made chan<- cluster.Pod, status func() string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		const namespace = "/api/v1/namespaces/ci/"
		path, ok := strings.CutPrefix(r.URL.Path, namespace)
		if !ok {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		metadata := `"metadata":{"name":"katbox-debug-abc12","namespace":"ci","uid":"u-1"}`
		switch {
		case path == "pods" && r.Method == http.MethodPost:
			var pod cluster.Pod
			if err := json.NewDecoder(r.Body).Decode(&pod); err != nil {
				t.Error(err)
			}
			made <- pod
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{`+metadata+`}`)
		case path == "pods/katbox-debug-abc12":
			_, _ = io.WriteString(w, `{`+metadata+`,"status":`+status()+`}`)
		case path == "events":
			if selector := r.URL.Query().Get("fieldSelector"); selector != "type=Warning,involvedObject.uid=u-1" {
				t.Errorf("events are selected by %q", selector)
			}
			_, _ = io.WriteString(w, `{"items":[`+
				`{"reason":"FailedMount","message":"volume is not retained\u001b[31m","lastTimestamp":"2026-01-02T00:00:00Z"},`+
				`{"reason":"Older","message":"x","lastTimestamp":"2026-01-01T00:00:00Z"}]}`)
		default:
			t.Errorf("%s %s", r.Method, r.URL)
		}
		return true
	}
}

// TestDebugFails: what is wrong is said, and what is left.
func TestDebugFails(t *testing.T) {
	for name, row := range map[string]struct {
		code   int
		part   string
		status string
		args   []string
	}{
		"ended": {verbs.CodeFailed, `has ended, Evicted: no room\x0a: see kubectl describe pod -n ci katbox-debug-abc12;`,
			`{"phase":"Failed","reason":"Evicted","message":"no room\n"}`, nil},
		"not mounted": {verbs.CodeFailed, `does not run after 10ms (FailedMount: volume is not retained\x1b[31m)`,
			`{"phase":"Pending"}`, []string{"--wait", "10ms"}},
		"path":      {verbs.CodeUsage, "whole volumes are mounted", "", []string{":out"}},
		"for":       {verbs.CodeUsage, "--for", "", []string{"--for", "8d"}},
		"for, word": {verbs.CodeUsage, "--for", "", []string{"--for", "long"}},
		"wait":      {verbs.CodeUsage, "--wait", "", []string{"--wait", "0s"}},
		"user":      {verbs.CodeUsage, "--run-as", "", []string{"--run-as", "root"}},
		"group":     {verbs.CodeUsage, "--run-as", "", []string{"--run-as", "1:-1"}},
		"dry run":   {verbs.CodeUsage, "--dry-run", "", []string{"--dry-run=server"}},
		"output":    {verbs.CodeUsage, "--output", "", []string{"--dry-run=client", "-o", "name"}},
		"image":     {verbs.CodeUsage, "--image", "", []string{"--image="}},
	} {
		t.Run(name, func(t *testing.T) {
			c, names := nightly(t)
			c.Intercept(pods(t, make(chan cluster.Pod, 1), func() string { return row.status }))
			args := []string{"debug", names[0]}
			if len(row.args) > 0 && strings.HasPrefix(row.args[0], ":") {
				args[1] += row.args[0]
			} else {
				args = append(args, row.args...)
			}
			as(t, c, "eve").wantFailure(row.code, []string{row.part}, args...)
		})
	}
}

// TestDebugInARestrictedNamespace: what the API server says of a pod that runs as root becomes what to do.
func TestDebugInARestrictedNamespace(t *testing.T) {
	c, names := nightly(t)
	c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/pods") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Forbidden","code":403,`+
			`"message":"pods \"katbox-debug-x2c4v\" is forbidden: violates PodSecurity \"restricted:latest\": `+
			`runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false), runAsUser=0 (pod must not set runAsUser=0)"}`)
		return true
	})
	eve := as(t, c, "eve")
	eve.wantFailure(verbs.CodeFailed, []string{
		"root wrote the files", "namespace ci takes no pod that runs as root (PodSecurity restricted:latest)",
		"--run-as 65534:65534", "kubectl katbox cp " + names[0],
	}, "debug", names[0], "--run-as", "0:0")
	eve.wantFailure(verbs.CodeFailed, []string{"namespace ci does not take the pod (PodSecurity restricted:latest): runAsNonRoot != true",
		"kubectl katbox cp " + names[0]}, "debug", names[0], "--run-as", "1000")
}

// TestDebugIsForbidden: without the right to make pods, or to list files, nothing is made.
func TestDebugIsForbidden(t *testing.T) {
	c, names := nightly(t)
	as(t, c, "eve").wantFailure(verbs.CodeFailed, []string{"make a pod in namespace ci", "forbidden"}, "debug", names[0])
	as(t, c, "vic").wantFailure(verbs.CodeFailed, []string{"--run-as gives it", "retainedvolumes/files"}, "debug", names[0])
}
