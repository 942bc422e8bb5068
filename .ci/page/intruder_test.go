package page

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

// secret is in a file that no stranger may read.
const secret = "words of the pod, for its own people"

// oneVolume is a cluster with one volume, which has the secret in log.txt.
func oneVolume(t testing.TB) (s *site, name string) {
	t.Helper()
	s = newSite(t, map[string]func(*node){"n1": func(n *node) {
		var path string
		name, path = n.put(func(d *volume.Description) { d.Record.PodName = "nightly-29000000-x7k2p" })
		must(t, os.WriteFile(filepath.Join(path, "log.txt"), []byte(secret+"\n"), 0o600))
	}})
	return s, name
}

// doors are all ways into the plugin's page, as paths.
func doors(name string) []string {
	volumes := katboxAPI + "/namespaces/ci/retainedvolumes"
	return []string{
		"/", "/index.html", "/session", "/tickets", "/alive", "/namespaces", "/raw/x/log.txt",
		volumes, volumes + "/" + name, volumes + "/" + name + "/files?path=/", volumes + "/" + name + "/log?path=log.txt",
		"/?token=guessed", "/?token=", "/api/v1/namespaces/ci/secrets/x", "//evil.example/",
		"/apis/katbox.io/v1alpha1/../../../api/v1/secrets", "/%2e%2e/",
	}
}

// TestStrangers: a program without a cookie, with a wrong Host or Origin, or with a token that was used is
// refused whatever it asks and however, and learns nothing.
func TestStrangers(t *testing.T) {
	s, name := oneVolume(t)
	p := startPlugin(t, s.kubeconfig("token-of-alice", ""))
	refused := func(what, method, address string, header map[string]string) {
		t.Helper()
		answer, text := p.send(method, address, header)
		if answer.StatusCode != http.StatusForbidden || contains(text, secret) || contains(text, name) || contains(text, canary) ||
			answer.Header.Get("Access-Control-Allow-Origin") != "" || answer.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %s %s is answered with %s %v:\n%s", what, method, address, answer.Status, answer.Header, text)
		}
	}
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"}
	for _, path := range doors(name) {
		for _, method := range methods {
			refused("no cookie", method, p.origin+path, nil)
		}
	}

	v := newVisitor(t)
	p.enter(v)
	key, cookies, raw := p.key, p.cookies(v), "http://"+p.raw
	if cookies == "" || key == "" {
		t.Fatalf("the visitor has the cookies %q and the key %q", cookies, key)
	}
	mine := func(more ...string) map[string]string {
		header := map[string]string{"Cookie": cookies, "Katbox-Page": key}
		for i := 0; i < len(more); i += 2 {
			header[more[i]] = more[i+1]
		}
		return header
	}
	list := p.origin + katboxAPI + "/namespaces/ci/retainedvolumes"
	if answer, text := p.send("GET", list, mine()); answer.StatusCode != http.StatusOK || !contains(text, name) {
		t.Fatalf("the page's own request is answered with %s: %s", answer.Status, text)
	}
	_, port, _ := net.SplitHostPort(p.host)
	number := 0
	_, err := fmt.Sscan(port, &number)
	must(t, err)
	for _, tt := range []struct {
		what   string
		header map[string]string
	}{
		{"another host", mine("Host", "evil.example:"+port)},
		{"another host without a port", mine("Host", "evil.example")},
		{"no port", mine("Host", "127.0.0.1")},
		{"another port", mine("Host", fmt.Sprintf("127.0.0.1:%d", number+7))},
		{"a host that begins alike", mine("Host", "127.0.0.1.evil.example:"+port)},
		{"another address of this machine", mine("Host", "[::1]:"+port)},
		{"a foreign origin", mine("Origin", "http://evil.example")},
		{"another port's origin", mine("Origin", fmt.Sprintf("http://127.0.0.1:%d", number+7))},
		{"a sandboxed origin", mine("Origin", "null")},
		{"the raw origin", mine("Origin", raw)},
		{"a cross-site request", mine("Sec-Fetch-Site", "cross-site")},
		{"a same-site request", mine("Sec-Fetch-Site", "same-site")},
		{"a cookie alone", map[string]string{"Cookie": cookies}},
		{"a key alone", map[string]string{"Katbox-Page": key}},
		{"a wrong key", mine("Katbox-Page", "1")},
		{"a cookie of another port", mine("Cookie", strings.Replace(cookies, port, "1"+port, 1))},
		{"an upgrade", mine("Connection", "Upgrade", "Upgrade", "websocket")},
	} {
		volumes := katboxAPI + "/namespaces/ci/retainedvolumes"
		for _, path := range []string{"/session", "/tickets", "/alive", "/namespaces", volumes, volumes + "/" + name + "/log?path=log.txt"} {
			for _, method := range methods {
				refused(tt.what, method, p.origin+path, tt.header)
			}
		}
	}
	// The token was used by the visitor.
	refused("a used token", "GET", p.first, nil)
	refused("a used token, with a guessed cookie", "GET", p.first, map[string]string{"Cookie": "katbox-" + port + "=guessed"})
	// The second origin knows tickets alone: the cookie opens nothing there, and is not read.
	for _, path := range doors(name) {
		for _, method := range methods {
			answer, text := p.send(method, raw+path, mine())
			if answer.StatusCode < 400 || contains(text, secret) || contains(text, name) ||
				answer.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("the second origin answers %s %s with %s:\n%s", method, path, answer.Status, text)
			}
		}
	}
	// What is not of Katbox is out of reach even for the page itself.
	for _, path := range []string{
		"/api/v1/namespaces/ci/secrets/x", "/apis/katbox.io/v1alpha1/../../../api/v1/namespaces/ci/secrets/x",
		"/apis/katbox.io/v1alpha1/%2e%2e/%2e%2e/%2e%2e/api/v1/secrets",
		"/apis/katbox.io/v1alpha1/namespaces/ci/retainedvolumes/../../../../../../api/v1/secrets", "/apis/apps/v1/deployments", "/apis",
		"/version", "/apis/katbox.io/v1alpha1x",
		"//api/v1/secrets", "/apis//katbox.io/v1alpha1/namespaces/ci/retainedvolumes",
		"/apis/katbox.io/v1alpha1/namespaces/ci%2fretainedvolumes/" + name,
	} {
		for _, method := range methods {
			if answer, text := p.send(method, p.origin+path, mine()); answer.StatusCode < 400 || contains(text, canary) {
				t.Errorf("the page's %s %s is answered with %s:\n%s", method, path, answer.Status, text)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asked := range s.asked {
		if contains(asked, "secrets") || contains(asked, "..") || contains(asked, "deployments") {
			t.Errorf("the API server was asked: %s", asked)
		}
	}
}

// TestRebinding: a name that an attacker resolves to 127.0.0.1 shows nothing of the page, to the browser of
// its user.
func TestRebinding(t *testing.T) {
	s, name := oneVolume(t)
	p := startPlugin(t, s.kubeconfig("token-of-alice", ""))
	v := newVisitor(t)
	p.enter(v)
	v.sees("nightly-29000000-x7k2p")
	evil := strings.Replace(p.origin, "127.0.0.1", rebound, 1)
	for _, path := range doors(name) {
		must(t, v.visit(evil+path))
		v.sees("may not use it")
		if text := ask[string](v, "document.documentElement.outerHTML"); contains(text, secret) || contains(text, "nightly-29000000") {
			t.Errorf("%s%s shows:\n%s", evil, path, text)
		}
	}
	// Also by scripts that run there: the attacker's own page was at the same name and port before.
	must(t, v.visit(evil+"/"))
	for _, path := range doors(name) {
		answer := ask[string](v, fmt.Sprintf(`fetch(%s, {headers: {"Katbox-Page": %s}})
			.then(async (a) => a.status + " " + await a.text(), String)`, quote(evil+path), quote(p.key)))
		if !strings.HasPrefix(answer, "403 ") && !contains(answer, "Error") || contains(answer, secret) {
			t.Errorf("a script of %s gets from %s: %s", evil, path, answer)
		}
	}
}

// TestForeignPages: a page of another origin, in the same browser, sends whatever a page can send. It
// reads nothing and changes nothing, also if it is on another port of this machine.
func TestForeignPages(t *testing.T) {
	s, name := oneVolume(t)
	p := startPlugin(t, s.kubeconfig("token-of-alice", ""))
	v := newVisitor(t)
	p.enter(v)
	v.sees("nightly-29000000-x7k2p")
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>foreign</title><p>foreign")
	}))
	defer foreign.Close()
	volumes, ways := katboxAPI+"/namespaces/ci/retainedvolumes", foreignWays(t)
	for _, name := range []string{"127.0.0.1", rebound, "localhost"} {
		from := strings.Replace(foreign.URL, "127.0.0.1", name, 1)
		must(t, v.visit(from+"/"))
		v.sees("foreign")
		for _, host := range []string{p.origin, strings.Replace(p.origin, "127.0.0.1", "localhost", 1), "http://" + p.raw} {
			for _, path := range append(doors(name), "/icon.svg", "/style.css", "/main.js") {
				for how, got := range ask[map[string]string](v, fmt.Sprintf(everyWay, ways, quote(host+path))) {
					if contains(got, secret) || contains(got, "nightly") || contains(got, "READ") {
						t.Errorf("a page of %s reads %s%s by %s: %s", from, host, path, how, got)
					}
				}
			}
			got := ask[string](v, fmt.Sprintf(`new Promise((done) => {
				const s = new WebSocket(%s);
				s.onopen = () => done("OPEN");
				s.onerror = () => done("refused");
			})`, quote(strings.Replace(host, "http", "ws", 1)+volumes)))
			if got != "refused" {
				t.Errorf("a page of %s has a WebSocket to %s: %s", from, host, got)
			}
		}
	}
	if code, _, _ := s.ask("token-of-alice", "GET", volumes+"/"+name); code != http.StatusOK {
		t.Errorf("the volume is gone: %d", code)
	}
	// Nothing but the page's own requests has reached the API server.
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asked := range s.asked {
		if contains(asked, "DELETE") || contains(asked, "/log") || contains(asked, "secrets") {
			t.Errorf("the API server was asked: %s", asked)
		}
	}
}

// everyWay tries all ways at once.
const everyWay = `Promise.all(Object.entries(%s).map(async ([how, way]) => [how, await way(%s)])).then(Object.fromEntries)`

// foreignWays are what a page can do with an address, as a script.
func foreignWays(t testing.TB) string {
	t.Helper()
	loaded, err := os.ReadFile("testdata/loaded.js")
	must(t, err)
	ways, err := os.ReadFile("testdata/foreign.js")
	must(t, err)
	return "(() => {" + string(loaded) + "\nreturn " + string(ways[strings.Index(string(ways), "({"):]) + "})()"
}
