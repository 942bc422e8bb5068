package main

import (
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// timedOut is what an API server says of a gateway that it does not reach, and unknownCA of one that has another certificate.
const (
	timedOut = `FailedDiscoveryCheck: failing or missing response from https://10.1.2.3:10250/apis/katbox.io/v1alpha1: ` +
		`Get \"https://10.1.2.3:10250/apis/katbox.io/v1alpha1\": dial tcp 10.1.2.3:10250: i/o timeout`
	unknownCA = `FailedDiscoveryCheck: failing or missing response from https://10.1.2.3:10250/apis/katbox.io/v1alpha1: ` +
		`Get \"https://10.1.2.3:10250/apis/katbox.io/v1alpha1\": tls: failed to verify certificate: x509: certificate signed by unknown authority`
)

// outOfReach lets the gateway of a cluster be down, for a reason and with a message that its administrator can read. Its
// endpoints have these conditions, and its pods this specification.
func outOfReach(said, conditions, spec string) func(*clustertest.Cluster) {
	reason, message, _ := strings.Cut(said, ": ")
	endpoint := func(address, pod string) string {
		return `{"addresses": ["` + address + `"], "conditions": ` + conditions + `, "targetRef": {"kind": "Pod", "name": "` + pod + `"}}`
	}
	objects := map[string]string{
		"/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.katbox.io": `{
			"spec": {"service": {"namespace": "katbox", "name": "katbox-gateway", "port": 443}},
			"status": {"conditions": [{"type": "Available", "status": "False", "reason": "` + reason + `", "message": "` + message + `"}]}}`,
		"/apis/discovery.k8s.io/v1/namespaces/katbox/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dkatbox-gateway": `{"items": [{
			"endpoints": [` + endpoint("10.1.2.3", "katbox-gateway-a") + "," + endpoint("10.1.3.3", "katbox-gateway-b") + `],
			"ports": [{"name": "api", "port": 10250}]}]}`,
		"/api/v1/namespaces/katbox/pods/katbox-gateway-a": `{"spec": {` + spec + `}}`,
	}
	return func(c *clustertest.Cluster) {
		c.Down(true)
		c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			object, there := objects[r.URL.RequestURI()]
			if there && r.Header.Get("Authorization") == "Bearer admin" {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, object)
				return true
			}
			return false
		})
	}
}

func TestCheck(t *testing.T) {
	for name, row := range map[string]struct {
		user, args string
		prepare    func(*clustertest.Cluster)
		code       int
		// lines are parts that a line each has, in this order.
		lines []string
	}{
		"all is well": {"eve", "", nil, 0, []string{
			"ok API server", "ok gateway", "ok list volumes", "ok see a volume", "ok list files", "ok read files",
			"ok delete volumes", "denied keep longer you may not patch retainedvolumes in namespace ci katbox-keep",
			"ok nodes all 2 are connected",
		}},
		"view": {"vic", "", nil, 1, []string{
			"ok API server knows you as vic", "ok gateway APIService v1alpha1.katbox.io is available; it is v1-gateway",
			"ok list volumes in namespace ci", "ok see",
			"denied list files you may not get retainedvolumes/files in namespace ci: the role edit includes it",
			"denied read files you may not get retainedvolumes/log", "denied delete volumes you may not delete retainedvolumes",
			"denied keep longer", "ok nodes",
		}},
		"another namespace": {"vic", "-n etl", nil, 1, []string{
			"ok API server", "ok gateway", "denied list volumes", "denied see a volume", "denied list files", "denied read files",
			"denied delete volumes", "denied keep longer",
		}},
		"all namespaces": {"admin", "-A", nil, 0, []string{
			"ok API server", "ok gateway", "ok list volumes in all namespaces", "ok see", "ok list files", "ok read", "ok delete",
			"ok keep longer", "ok nodes",
		}},
		"a node is away": {"eve", "", func(c *clustertest.Cluster) { c.Lost("n2") }, 1, []string{
			"ok API", "ok gateway", "ok list", "ok see", "ok list files", "ok read", "ok delete", "denied keep longer",
			"failed nodes 1 of 2 nodes did not answer: n2; see kubectl get nodes",
		}},
		"pools on arrays are no nodes": {"admin", "-n etl", func(c *clustertest.Cluster) {
			c.PutOnArray("pvc-0c8e", "ci", "data", time.Now().Add(-5*time.Hour))
		}, 0, []string{
			"ok API", "ok gateway", "ok list", "ok see", "ok list files", "ok read", "ok delete", "ok keep longer", "ok nodes all 2 are connected",
		}},
		"no gateway": {"eve", "", (*clustertest.Cluster).Uninstall, 1, []string{
			"ok API server", "failed gateway this cluster has no APIService v1alpha1.katbox.io; install Katbox",
		}},
		"the gateway is down": {"eve", "", func(c *clustertest.Cluster) { c.Down(true) }, 1, []string{
			"ok API server", "failed gateway APIService v1alpha1.katbox.io is not available: the API server answered 503 Service Unavailable",
			"failed namespaces", "ok list", "ok see", "ok list files", "ok read", "ok delete", "denied keep longer",
		}},
		"out of reach": {"admin", "", outOfReach(timedOut, `{"ready": true}`, ""), 1, []string{
			"ok API server",
			"failed gateway cannot connect i/o timeout; 10.1.2.3:10250 and 10.1.3.3:10250, addresses of pods gateway.hostNetwork=true",
			"failed namespaces no namespace of the cluster is deleted kubectl delete apiservice v1alpha1.katbox.io",
			"ok list", "ok see", "ok list files", "ok read", "ok delete", "ok keep longer",
		}},
		"out of reach on nodes": {"admin", "", outOfReach(timedOut, `{"ready": true}`, `"hostNetwork": true`), 1, []string{
			"ok API server", "failed gateway cannot connect i/o timeout; 10.1.2.3:10250 and 10.1.3.3:10250, addresses of nodes, firewall",
			"failed namespaces", "ok list", "ok see", "ok list files", "ok read", "ok delete", "ok keep longer",
		}},
		"out of reach, and not told": {"eve", "", outOfReach(timedOut, `{"ready": true}`, ""), 1, []string{
			"ok API server", "failed gateway is not available: the API server answered 503", "failed namespaces",
			"ok list", "ok see", "ok list files", "ok read", "ok delete", "denied keep longer",
		}},
		"not ready": {"admin", "", outOfReach(timedOut, `{"ready": false}`, ""), 1, []string{
			"ok API server", "failed gateway is not available: failing or missing i/o timeout; see kubectl -n katbox get pods", "failed namespaces",
			"ok list", "ok see", "ok list files", "ok read", "ok delete", "ok keep longer",
		}},
		"reached, and not believed": {"admin", "", outOfReach(unknownCA, `{"ready": true}`, ""), 1, []string{
			"ok API server", "failed gateway is not available: failing or missing x509: unknown authority; see kubectl -n katbox get pods",
			"failed namespaces", "ok list", "ok see", "ok list files", "ok read", "ok delete", "ok keep longer",
		}},
		"no endpoints": {"admin", "", outOfReach("MissingEndpoints: there are no addresses with port name api", `{}`, ""), 1, []string{
			"ok API server", "failed gateway is not available: there are no addresses with port name api; see", "failed namespaces",
			"ok list", "ok see", "ok list files", "ok read", "ok delete", "ok keep longer",
		}},
		"no credentials": {"eve", "--token other", nil, 1, []string{"failed API server does not accept your credentials"}},
		"no API server":  {"eve", "-s https://127.0.0.1:1", nil, 1, []string{"failed API server https://127.0.0.1:1 cannot be reached"}},
		"an old API server": {"eve", "", func(c *clustertest.Cluster) {
			c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if strings.Contains(r.URL.Path, "selfsubjectreviews") {
					http.NotFound(w, r)
					return true
				}
				return false
			})
		}, 0, []string{
			"ok API server too old to say who you are", "ok gateway", "ok list", "ok see", "ok list files", "ok read", "ok delete",
			"denied keep longer", "ok nodes",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New(t)
			c.Node("n1")
			c.Node("n2")
			if row.prepare != nil {
				row.prepare(c)
			}
			code, stdout, stderr := as(t, c, row.user).run(append([]string{"check"}, strings.Fields(row.args)...)...)
			lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
			if code != row.code || len(lines) != len(row.lines) || (code != 0) != strings.Contains(stderr, "not everything works for you") {
				t.Fatalf("code %d, %q\n%s", code, stderr, stdout)
			}
			for i, want := range row.lines {
				line := strings.Join(strings.Fields(lines[i]), " ")
				result, text, _ := strings.Cut(want, " ")
				for word := range strings.FieldsSeq(text) {
					if !strings.Contains(line, word) {
						t.Errorf("line %q lacks %q of %q", line, word, want)
					}
				}
				if !strings.HasPrefix(line, result+" ") {
					t.Errorf("line %q, want %q", line, want)
				}
			}
		})
	}
}

// TestPageOfPlatformsIsThere: check sends people to a section of it.
func TestPageOfPlatformsIsThere(t *testing.T) {
	page, section, _ := strings.Cut(platforms, "#")
	content, err := os.ReadFile("../../" + page)
	if err != nil || !strings.Contains(strings.ToLower(string(content)), "\n## "+strings.ReplaceAll(section, "-", " ")+"\n") {
		t.Errorf("%s has no section %s: %v", page, section, err)
	}
}

func TestVersion(t *testing.T) {
	c := clustertest.New(t)
	u := as(t, c, "vic")
	mine := "kubectl-katbox dev (unknown commit, " + runtime.GOOS + "/" + runtime.GOARCH + ")\n"
	if code, stdout, stderr := u.run("version"); code != 0 || stdout != mine+"katbox-gateway v1-gateway\n" {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	if code, stdout, _ := u.run("version", "--client", "-s", "https://127.0.0.1:1"); code != 0 || stdout != mine {
		t.Errorf("--client: code %d, %q", code, stdout)
	}
	if code, stdout, _ := u.run("--version"); code != 0 || stdout != mine {
		t.Errorf("--version: code %d, %q", code, stdout)
	}
	c.Down(true)
	code, stdout, stderr := u.run("version")
	if code != verbs.CodeFailed || stdout != mine || !strings.Contains(stderr, "kubectl katbox check") {
		t.Errorf("without an answer: code %d, %q, %q", code, stdout, stderr)
	}
	c.Uninstall()
	if code, stdout, stderr := u.run("version"); code != verbs.CodeFailed || stdout != mine || !strings.Contains(stderr, "has no APIService") {
		t.Errorf("without a gateway: code %d, %q, %q", code, stdout, stderr)
	}
}
