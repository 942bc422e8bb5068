package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// page is a page that the verb ui serves, in a browser without a screen.
type page struct {
	t           *testing.T
	address     string
	cookie, key string
}

// open runs the verb until the test ends, and opens its page. The test must not read stderr before.
func (u user) open(stderr io.Writer, args ...string) page {
	u.t.Helper()
	ctx, cancel := context.WithCancel(u.t.Context())
	out, stdout := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		all := append([]string{"kubectl-katbox", "ui", "--kubeconfig", u.kubeconfig}, args...)
		ended <- run(ctx, all, strings.NewReader(""), stdout, stderr)
		stdout.Close()
	}()
	u.t.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			u.t.Errorf("ui %q ends with %d", args, code)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must(u.t, err)
	go func() { _, _ = io.Copy(io.Discard, out) }()
	first := strings.TrimSpace(line)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Get(first)
	must(u.t, err)
	defer answer.Body.Close()
	_, key, _ := strings.Cut(answer.Header.Get("Location"), "#key=")
	if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 || key == "" {
		u.t.Fatalf("%s: %s %q", first, answer.Status, answer.Header)
	}
	address, _, _ := strings.Cut(first, "/?")
	return page{u.t, address, answer.Header.Get("Set-Cookie"), key}
}

// do sends a request as the page does.
func (p page) do(method, target, body string) (code int, text string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.address+target, strings.NewReader(body))
	must(p.t, err)
	cookie, _, _ := strings.Cut(p.cookie, ";")
	r.Header.Set("Cookie", cookie)
	r.Header.Set("Katbox-Page", p.key)
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	} else if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	must(p.t, err)
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	must(p.t, err)
	return answer.StatusCode, string(all)
}

// target returns what the page shows first.
func (p page) target() map[string]string {
	p.t.Helper()
	var session struct{ Target map[string]string }
	_, text := p.do("GET", "/session", "")
	must(p.t, json.Unmarshal([]byte(text), &session))
	return session.Target
}

func TestThePageReadsAndDeletes(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	name, dir := n.Put(1, "ci", "nightly", "nightly-x7k2p")
	must(t, os.WriteFile(filepath.Join(dir, "log.txt"), []byte("line\n"), 0o644))
	p := as(t, c, "eve").open(io.Discard, "--no-browser")
	volumes := "/apis/katbox.io/v1alpha1/namespaces/ci/retainedvolumes"
	for target, want := range map[string]string{
		"/": "<title>", "/session": `"namespace":"ci"`, volumes: name, volumes + "/" + name: `"kind":"RetainedVolume"`,
		volumes + "/" + name + "/files":            `"log.txt"`,
		volumes + "/" + name + "/log?path=log.txt": "line\n",
	} {
		if code, text := p.do("GET", target, ""); code != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %q", target, code, text)
		}
	}
	_, text := p.do("POST", "/tickets", `{"namespace":"ci","name":"`+name+`","path":"log.txt","kind":"download"}`)
	var ticket struct{ URL string }
	must(t, json.Unmarshal([]byte(text), &ticket))
	file, err := http.Get(ticket.URL)
	must(t, err)
	defer file.Body.Close()
	if all, err := io.ReadAll(file.Body); err != nil || string(all) != "line\n" {
		t.Errorf("the download has %q, %v", all, err)
	}
	// Errors are those of the cluster, with what to do.
	if code, text := p.do("POST", "/tickets", `{"namespace":"ci","name":"`+name+`","path":"none","kind":"download"}`); code != 404 ||
		!strings.Contains(text, `"message"`) {
		t.Errorf("a ticket for a file that is not there: %d %q", code, text)
	}
	if code, text := p.do("GET", "/apis/katbox.io/v1alpha1/namespaces/etl/retainedvolumes", ""); code != 403 ||
		!strings.Contains(text, `"kind":"Status"`) {
		t.Errorf("another namespace: %d %q", code, text)
	}
	if code, _ := p.do("DELETE", volumes+"/"+name, ""); code != 200 || n.Volumes() != 0 {
		t.Errorf("a deletion: %d", code)
	}
}

// TestThePagePins: what the page decides is what the plugin's verbs decide, with the rights of the user.
func TestThePagePins(t *testing.T) {
	c := clustertest.New(t)
	name, _ := c.Node("n1").Put(1, "ci", "nightly", "nightly-x7k2p")
	volume := "/apis/katbox.io/v1alpha1/namespaces/ci/retainedvolumes/" + name
	pin := `{"spec":{"keepUntil":"` + time.Now().Add(60*time.Hour).UTC().Format(time.RFC3339) + `","keepReason":"post-mortem"}}`
	kim, eve := as(t, c, "kim"), as(t, c, "eve")
	p := kim.open(io.Discard, "--no-browser")
	if code, text := p.do("PATCH", volume, pin); code != 200 || !strings.Contains(text, `"kind":"Pinned"`) {
		t.Errorf("pin: %d %q", code, text)
	}
	if _, stdout, _ := eve.run("stat", name); !strings.Contains(stdout, "pinned until ") ||
		!strings.Contains(stdout, " by kim: post-mortem\n") {
		t.Errorf("stat:\n%s", stdout)
	}
	if code, text := p.do("PATCH", volume, `{"spec":{"keepUntil":null}}`); code != 200 || strings.Contains(text, `"hold"`) {
		t.Errorf("unpin: %d %q", code, text)
	}
	p = eve.open(io.Discard, "--no-browser")
	if code, text := p.do("PATCH", volume, pin); code != 403 || !strings.Contains(text, "katbox-keep") {
		t.Errorf("pin without the right: %d %q", code, text)
	}
	if code, text := p.do("DELETE", volume+"?gracePeriodSeconds=1&reason=clear&dryRun=All", ""); code != 200 ||
		!strings.Contains(text, `"message":"released`) {
		t.Errorf("a release that is tried: %d %q", code, text)
	}
	if code, _ := p.do("DELETE", volume+"?gracePeriodSeconds=1&reason=clear", ""); code != 200 {
		t.Errorf("release: %d", code)
	}
	if _, stdout, _ := eve.run("list", name); !strings.Contains(stdout, "(released)") {
		t.Errorf("list:\n%s", stdout)
	}
}

// TestTheNamespacesOfThePage: all, to those who may list them; else those of the kubeconfig for this cluster.
func TestTheNamespacesOfThePage(t *testing.T) {
	c := clustertest.New(t)
	c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/namespaces" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer admin" {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		item, more := "ci", `"continue":"next"`
		if r.URL.Query().Get("continue") == "next" {
			item, more = "web", ""
		}
		_, _ = io.WriteString(w, `{"metadata":{`+more+`},"items":[{"metadata":{"name":"`+item+`"}}]}`)
		return true
	})
	for name, want := range map[string]string{
		"admin": `{"namespaces":["ci","web"],"all":true}`, "eve": `{"namespaces":["ci","etl"],"all":false}`,
	} {
		if code, text := as(t, c, name).open(io.Discard, "--no-browser").do("GET", "/namespaces", ""); code != 200 || text != want {
			t.Errorf("%s: %d %s, want %s", name, code, text, want)
		}
	}
	// Commands of the page reach the same cluster.
	eve := as(t, c, "eve")
	if _, text := eve.open(io.Discard, "--no-browser", "--context", "ci").do("GET", "/session", ""); !strings.Contains(text,
		`"flags":["--kubeconfig=`+eve.kubeconfig+`","--context=ci"]`) {
		t.Errorf("the session: %s", text)
	}
}

func TestWhatThePageShowsFirst(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	newest, _ := n.Put(1, "ci", "nightly", "nightly-aaaaa")
	n.Put(2, "ci", "nightly", "nightly-bbbbb")
	other, _ := n.Put(3, "ci", "other", "other-ccccc")
	put := func(number int, pod, name string, outcome volume.Outcome) string {
		v, _ := n.Put(number, "ci", pod, pod, func(d *volume.Description) {
			d.Record.Pod, d.Record.VolumeName, d.Record.Outcome = volume.PodUID("uid-"+pod), name, outcome
		})
		return v
	}
	failedFiles, failedLogs := put(11, "failed", "scratch", volume.Failed), put(10, "failed", volume.LogsName, volume.Failed)
	doneFiles := put(13, "done", "scratch", volume.Succeeded)
	put(12, "done", volume.LogsName, volume.Succeeded)
	eve := as(t, c, "eve")
	for args, want := range map[string]map[string]string{
		"":                            nil,
		"job/nightly":                 {"namespace": "ci", "name": "", "path": "", "search": "job/nightly"},
		"job/nightly --last":          {"namespace": "ci", "name": newest, "path": "", "search": ""},
		"job/nightly:a/b --last":      {"namespace": "ci", "name": newest, "path": "a/b", "search": ""},
		"other-ccccc":                 {"namespace": "ci", "name": other, "path": "", "search": ""},
		"other-ccccc:":                {"namespace": "ci", "name": other, "path": "", "search": ""},
		other + ":x --volume scratch": {"namespace": "ci", "name": other, "path": "x", "search": ""},
		"failed":                      {"namespace": "ci", "name": failedLogs, "path": "", "search": ""},
		"job/failed --last":           {"namespace": "ci", "name": failedLogs, "path": "", "search": ""},
		"failed:":                     {"namespace": "ci", "name": failedFiles, "path": "", "search": ""},
		"failed --volume scratch":     {"namespace": "ci", "name": failedFiles, "path": "", "search": ""},
		failedFiles:                   {"namespace": "ci", "name": failedFiles, "path": "", "search": ""},
		"done":                        {"namespace": "ci", "name": doneFiles, "path": "", "search": ""},
		"job/done --last":             {"namespace": "ci", "name": doneFiles, "path": "", "search": ""},
	} {
		got := eve.open(io.Discard, append(strings.Fields(args), "--no-browser")...).target()
		if len(got) != len(want) {
			t.Errorf("ui %s shows %q, want %q", args, got, want)
		}
		for key := range want {
			if got[key] != want[key] {
				t.Errorf("ui %s shows %q, want %q", args, got, want)
			}
		}
	}
	if got := as(t, c, "admin").open(io.Discard, "-A", "--no-browser", "job/nightly").target(); got["namespace"] != "*" ||
		got["search"] == "" {
		t.Errorf("ui -A shows %q", got)
	}
}

func TestThePageCannotBegin(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	n.Put(1, "ci", "nightly", "nightly-aaaaa")
	n.Put(2, "ci", "nightly", "nightly-bbbbb")
	eve := as(t, c, "eve")
	eve.wantFailure(verbs.CodeNoVolume, []string{"pod/none"}, "ui", "none")
	eve.wantFailure(verbs.CodeFailed, []string{"--last", "2 retained volumes"}, "ui", "job/nightly:x")
	eve.wantFailure(verbs.CodeUsage, []string{"not a target"}, "ui", "Not_A_Name")
	eve.wantFailure(verbs.CodeFailed, []string{"--port=80"}, "ui", "--port", "80")
	// Another namespace may be chosen on the page.
	if got := as(t, c, "bob").open(io.Discard, "--no-browser").target(); got != nil {
		t.Errorf("bob begins with %q", got)
	}
	c.Uninstall()
	as(t, c, "admin").wantFailure(verbs.CodeFailed, []string{"v1alpha1.katbox.io"}, "ui")
}

// What is printed: the address on stdout, and on a machine without a display how to get there.
func TestTheAddressIsPrinted(t *testing.T) {
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	t.Setenv("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22")
	c := clustertest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, stdout := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"kubectl-katbox", "ui", "--kubeconfig", as(t, c, "eve").kubeconfig}, strings.NewReader(""), stdout, &stderr)
		stdout.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	if !strings.HasPrefix(line, "http://127.0.0.1:") || !strings.Contains(line, "/?token=") {
		t.Errorf("stdout is %q", line)
	}
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("it ends with %d", got)
	}
	said := stderr.String()
	port, _, _ := strings.Cut(strings.TrimPrefix(line, "http://127.0.0.1:"), "/")
	if strings.Contains(said, "token") || !strings.Contains(said, "ssh -L "+port+":127.0.0.1:"+port+" -L ") ||
		!strings.Contains(said, "It works once") {
		t.Errorf("stderr is %q", said)
	}
}
