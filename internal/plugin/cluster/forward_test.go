package cluster

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// page is what sends requests through Forward.
type page struct {
	t      *testing.T
	c      *clustertest.Cluster
	server *httptest.Server
}

func newPage(t *testing.T, c *clustertest.Cluster, user string) page {
	t.Helper()
	p := page{t, c, httptest.NewServer(connect(t, c, user).Forward())}
	t.Cleanup(p.server.Close)
	return p
}

// ask sends a request with a path that is not cleaned, and returns the whole answer.
func (p page) ask(method, path string, header http.Header) (*http.Response, string) {
	p.t.Helper()
	to, err := url.Parse(p.server.URL)
	must(p.t, err)
	opaque, query, _ := strings.Cut(path, "?")
	to.Opaque, to.RawQuery = "//"+to.Host+opaque, query
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.server.URL, strings.NewReader("a body"))
	must(p.t, err)
	r.URL = to
	maps.Copy(r.Header, header)
	answer, err := http.DefaultTransport.RoundTrip(r)
	must(p.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(p.t, err)
	return answer, string(text)
}

const (
	forwarded = "/apis/katbox.io/v1alpha1"
	inCI      = forwarded + "/namespaces/ci/retainedvolumes"
)

// TestForward passes on what a page does with volumes.
func TestForward(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	name, dir := n.Put(1, "ci", "nightly", "nightly-x7k2p")
	must(t, os.WriteFile(filepath.Join(dir, "log.txt"), []byte("one\ntwo\n"), 0o600))
	c.Lost("n2")
	p := newPage(t, c, "eve")
	answer, text := p.ask("GET", inCI+"?limit=5", nil)
	if answer.StatusCode != 200 || !strings.Contains(text, name) || !strings.Contains(answer.Header.Get("Warning"), "n2") {
		t.Errorf("list: %d %q %s", answer.StatusCode, answer.Header, text)
	}
	answer, text = p.ask("GET", inCI+"/"+name+"/files?path=%2F", nil)
	if answer.StatusCode != 200 || !strings.Contains(text, "log.txt") {
		t.Errorf("files: %d %s", answer.StatusCode, text)
	}
	log := inCI + "/" + name + "/log?path=log.txt"
	answer, text = p.ask("GET", log, http.Header{"Range": {"bytes=4-"}})
	if answer.StatusCode != 206 || text != "two\n" || answer.Header.Get("Content-Range") != "bytes 4-7/8" || answer.Header.Get("ETag") == "" ||
		!strings.HasPrefix(answer.Header.Get("Content-Disposition"), "attachment") || answer.Header.Get("Katbox-Size") != "8" {
		t.Errorf("part of a file: %d %q %q", answer.StatusCode, answer.Header, text)
	}
	if answer, text = p.ask("HEAD", log, nil); answer.StatusCode != 200 || text != "" || answer.ContentLength != 8 {
		t.Errorf("head: %d %d %q", answer.StatusCode, answer.ContentLength, text)
	}
	answer, text = p.ask("GET", inCI+"/"+name+"/log?path=%2F&archive=tar", nil)
	if answer.StatusCode != 200 || !strings.Contains(text, "log.txt") || answer.ContentLength >= 0 {
		t.Errorf("archive: %d of %d bytes, header %q", answer.StatusCode, len(text), answer.Header)
	}
	for _, path := range []string{inCI + "/-/log?grep=two", inCI + "/" + name + "/log?grep=two"} {
		answer, text = p.ask("GET", path, nil)
		if answer.StatusCode != 200 || !strings.Contains(text, `"text":"two"`) || !strings.Contains(text, `{"end":`) {
			t.Errorf("search: %d %q %s", answer.StatusCode, answer.Header, text)
		}
	}
	if answer, text = p.ask("GET", forwarded+"/retainedvolumes/-/log?grep=two", nil); answer.StatusCode != 403 {
		t.Errorf("search of all namespaces: %d %s", answer.StatusCode, text)
	}
	for _, path := range []string{inCI + "/-/files", inCI + "/-", forwarded + "/retainedvolumes/-"} {
		if answer, text = p.ask("GET", path, nil); answer.StatusCode != 404 {
			t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		}
	}
	if answer, text = p.ask("PATCH", inCI+"/"+name, nil); answer.StatusCode != 400 || !strings.Contains(text, "not a patch in JSON") {
		t.Errorf("a patch that is none: %d %s", answer.StatusCode, text)
	}
	if answer, text = p.ask("DELETE", inCI+"/"+name, nil); answer.StatusCode != 200 || n.Volumes() != 0 {
		t.Errorf("delete: %d %s", answer.StatusCode, text)
	}
	answer, text = p.ask("GET", inCI+"/"+name, nil)
	if answer.StatusCode != 404 || !strings.Contains(text, `"kind":"Status"`) || !strings.Contains(text, "another namespace than ci") {
		t.Errorf("a volume that is gone: %d %s", answer.StatusCode, text)
	}
	answer, text = newPage(t, c, "vic").ask("GET", log, nil)
	if answer.StatusCode != 403 || !strings.Contains(text, "and not read their files") {
		t.Errorf("without the right: %d %s", answer.StatusCode, text)
	}
}

// TestVolumesOfPodsWithLongNames: such a name is cut at any place, so that the name of the volume need
// be no DNS name.
func TestVolumesOfPodsWithLongNames(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	client, p := connect(t, c, "eve"), newPage(t, c, "eve")
	for i, last := range []string{"p", "-", "."} {
		name, dir := n.Put(i, "ci", "nightly", strings.Repeat("p", 239)+last+"nightly")
		must(t, os.WriteFile(filepath.Join(dir, "log.txt"), nil, 0o600))
		if v, err := client.Get(t.Context(), "ci", name); err != nil || v.Name != name {
			t.Errorf("get %q: %q, %v", name, v.Name, err)
		}
		list, err := client.Files(t.Context(), ID("ci", name), api.FilesQuery{Path: "/"})
		if err != nil || len(list.Entries) != 1 {
			t.Errorf("files of %q: %+v, %v", name, list, err)
		}
		if answer, text := p.ask("GET", inCI+"/"+name+"/files?path=%2F", nil); answer.StatusCode != 200 || !strings.Contains(text, "log.txt") {
			t.Errorf("files of %q for a page: %d %s", name, answer.StatusCode, text)
		}
		if answer, text := p.ask("DELETE", inCI+"/"+name, nil); answer.StatusCode != 200 {
			t.Errorf("delete %q: %d %s", name, answer.StatusCode, text)
		}
	}
}

// TestForwardPassesOnNothingElse: no other path, method or header reaches the API server.
func TestForwardPassesOnNothingElse(t *testing.T) {
	c := clustertest.New(t)
	p := newPage(t, c, "admin")
	for path, methods := range map[string]string{
		"/": "GET", "/api/v1/secrets": "GET", "/apis/katbox.io": "GET", "/apis/katbox.io/v1alpha1": "GET", forwarded + "/": "GET",
		forwarded + "/namespaces": "GET", forwarded + "/namespaces/ci": "GET", forwarded + "/pods": "GET",
		forwarded + "/namespaces/ci/pods": "GET", forwarded + "/retainedvolumes/x": "GET", inCI + "/": "GET", inCI + "//log": "GET",
		inCI + "/a/exec": "GET", inCI + "/a/log/": "GET", inCI + "/a/log/b": "GET", inCI + "/..": "GET",
		inCI + "/a/../../../../../../../api/v1/secrets":                                            "GET",
		forwarded + "/namespaces/ci/retainedvolumes/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/api": "GET",
		forwarded + "/namespaces/%2e%2e/retainedvolumes/a":                                         "GET",
		forwarded + "/namespaces/ci%2fretainedvolumes%2fa/retainedvolumes":                         "GET",
		inCI + "/a%3Fb": "GET", inCI + "/a%00": "GET", "/apis/katbox.io/v1alpha2/retainedvolumes": "GET",
		"//apis/katbox.io/v1alpha1/retainedvolumes": "GET", "/apis/katbox.io/v1alpha1/watch/retainedvolumes": "GET",
		inCI:            "DELETE POST PUT PATCH OPTIONS CONNECT TRACE",
		inCI + "/a":     "POST PUT OPTIONS get",
		inCI + "/a/log": "DELETE POST PUT PATCH", inCI + "/a/files": "DELETE POST",
		inCI + "?limit=1;x": "GET",
	} {
		for method := range strings.FieldsSeq(methods) {
			if answer, text := p.ask(method, path, nil); answer.StatusCode < 400 || answer.StatusCode >= 500 {
				t.Errorf("%s %s: %d %s", method, path, answer.StatusCode, text)
			}
		}
	}
	if asked := c.Requests(); len(asked) > 0 {
		t.Errorf("passed on %q", asked)
	}
	var seen http.Header
	c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		seen = r.Header.Clone()
		if body, _ := io.ReadAll(r.Body); len(body) > 0 {
			t.Errorf("the API server got the body %q", body)
		}
		for _, name := range []string{"Set-Cookie", "Strict-Transport-Security", "Access-Control-Allow-Origin", "Www-Authenticate", "Server"} {
			w.Header().Set(name, "x")
		}
		w.Header().Set("Etag", `"x"`)
		w.WriteHeader(http.StatusNotModified)
		return true
	})
	answer, _ := p.ask("GET", inCI, http.Header{
		"Authorization": {"Bearer other"}, "Impersonate-User": {"root"}, "X-Remote-User": {"root"}, "Cookie": {"a=b"}, "Origin": {"http://x"},
		"Referer": {"http://x"}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "If-None-Match": {`"x"`}, "Content-Type": {"a/b"},
	})
	if answer.StatusCode != http.StatusNotModified || answer.Header.Get("Etag") != `"x"` || seen.Get("If-None-Match") != `"x"` {
		t.Errorf("answer %d %q to %q", answer.StatusCode, answer.Header, seen)
	}
	if seen.Get("Authorization") != "Bearer admin" {
		t.Errorf("the API server saw another user: %q", seen["Authorization"])
	}
	for _, name := range []string{"Impersonate-User", "X-Remote-User", "Cookie", "Origin", "Referer", "Upgrade", "Content-Type"} {
		if seen.Get(name) != "" {
			t.Errorf("the API server got the header %s: %q", name, seen[name])
		}
	}
	for _, name := range []string{"Set-Cookie", "Strict-Transport-Security", "Access-Control-Allow-Origin", "Www-Authenticate", "Server"} {
		if answer.Header.Get(name) != "" {
			t.Errorf("the page got the header %s", name)
		}
	}
	for _, code := range []int{301, 302, 307} {
		c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "https://elsewhere.example/", code)
			return true
		})
		if answer, text := p.ask("GET", inCI, nil); answer.StatusCode != http.StatusBadGateway || answer.Header.Get("Location") != "" {
			t.Errorf("redirected with %d: %d %q %s", code, answer.StatusCode, answer.Header, text)
		}
	}
}

// TestForwardBreaksOff: an answer that is cut ends in no other way at the page.
func TestForwardBreaksOff(t *testing.T) {
	c := clustertest.New(t)
	known := true
	c.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if known {
			w.Header().Set("Katbox-Size", "9")
			w.Header().Set("Katbox-Offset", "0")
		}
		_, _ = io.WriteString(w, "begin")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	p := newPage(t, c, "eve")
	answer, err := http.Get(p.server.URL + inCI + "/a.b/log?path=x")
	must(t, err)
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("a cut answer ended well, after %q", text)
	}
	known = false
	if answer, text := p.ask("GET", inCI+"/a.b/log?path=x", nil); answer.StatusCode != 502 || !strings.Contains(text, "not say how long") {
		t.Errorf("nothing says how long the answer is: %d %q", answer.StatusCode, text)
	}
	c.Down(true)
	gone := connect(t, c, "eve")
	gone.caller.Base = &url.URL{Scheme: "https", Host: "127.0.0.1:1"}
	w := httptest.NewRecorder()
	gone.Forward().ServeHTTP(w, httptest.NewRequest("GET", inCI, nil))
	if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "cannot be reached") {
		t.Errorf("without an API server: %d %s", w.Code, w.Body)
	}
}
