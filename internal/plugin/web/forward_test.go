package web

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestWhatTheClusterSees(t *testing.T) {
	p := start(t, Config{})
	r := p.good("GET", volume+"/log?path=a%2Fb%2500&tailLines=3").with("Accept", "application/json").with("Range",
		"bytes=1-").with("If-Range", `"x"`).
		with("Authorization", "Bearer mine").with("Impersonate-User", "root").with("Impersonate-Group",
		"system:masters").with("X-Remote-User", "root").
		with("X-Remote-Group", "system:masters").with("X-Forwarded-For", "1.2.3.4").with("Connection",
		"keep-alive, X-Mine").with("Te", "trailers").
		with("Proxy-Authorization", "Basic x").with("X-Http-Method-Override", "DELETE").with("User-Agent", "browser").with("Referer",
		"http://127.0.0.1/")
	if got := p.page(r); got.code != 200 {
		t.Fatalf("%d %q", got.code, got.body)
	}
	asked := p.cluster.requests()
	if len(asked) != 1 {
		t.Fatalf("the cluster was asked %d times", len(asked))
	}
	one := asked[0]
	if one.Method != "GET" || one.URL.String() != volume+"/log?path=a%2Fb%2500&tailLines=3" || one.Host != "" || one.RemoteAddr != "" {
		t.Errorf("the cluster was asked %s %s of host %q", one.Method, one.URL, one.Host)
	}
	want := map[string]string{"Accept": "application/json", "Range": "bytes=1-", "If-Range": `"x"`}
	mustHave(t, one.Header, want)
	if len(one.Header) != len(want) {
		t.Errorf("the cluster sees %q", one.Header)
	}
}

func TestRequestsWithABodyAreRefused(t *testing.T) {
	p := start(t, Config{})
	for _, method := range []string{"GET", "DELETE"} {
		r := p.good(method, volume).with("Content-Type", "application/json")
		r.body = `{"preconditions":{"uid":"x"}}`
		p.refused(r)
		p.refused(p.good(method, volume).with("Transfer-Encoding", "chunked"))
	}
}

func TestAnswersAreHarmless(t *testing.T) {
	p := start(t, Config{})
	for contentType, want := range map[string]string{
		"text/html": "application/octet-stream", "text/html; charset=utf-8": "application/octet-stream",
		"TEXT/HTML":     "application/octet-stream",
		"image/svg+xml": "application/octet-stream", "application/xhtml+xml": "application/octet-stream",
		"application/pdf": "application/octet-stream",
		"text/javascript": "application/octet-stream", "multipart/x-mixed-replace": "application/octet-stream",
		"": "application/octet-stream", "nonsense;;": "application/octet-stream",
		"application/json, text/html": "application/octet-stream", "text/plain": "text/plain; charset=utf-8",
		"text/plain; charset=utf-7": "text/plain; charset=utf-8",
		"application/json":          "application/json", "application/json;as=Table;v=v1;g=meta.k8s.io": "application/json",
	} {
		p.cluster.answers(func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h["Content-Type"] = []string{contentType}
			for _, name := range []string{"Set-Cookie", "Location", "Refresh", "Link", "Access-Control-Allow-Origin", "Clear-Site-Data",
				"Service-Worker-Allowed", "Sourcemap",
				"Www-Authenticate", "Alt-Svc", "Report-To", "X-Mine"} {
				h.Set(name, "x")
			}
			h.Set("Content-Security-Policy", "default-src *")
			h.Set("Cache-Control", "max-age=100")
			h.Set("X-Content-Type-Options", "sniff")
			h.Set("Katbox-Size", "11")
			h.Set("Warning", `299 - "katbox: x"`)
			_, _ = io.WriteString(w, "<script>...")
		})
		got := p.page(p.good("GET", volume+"/log?path=a"))
		if got.code != 200 || got.body != "<script>..." {
			t.Errorf("%q: %d %q", contentType, got.code, got.body)
		}
		mustHave(t, got.header, map[string]string{
			"Content-Type": want, "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY", "Katbox-Size": "11", "Warning": `299 - "katbox: x"`,
		})
		for _, name := range []string{"Set-Cookie", "Location", "Refresh", "Link", "Access-Control-Allow-Origin", "Clear-Site-Data",
			"Www-Authenticate", "Alt-Svc", "X-Mine"} {
			if value := got.header.Get(name); value != "" {
				t.Errorf("%q: %s is %q", contentType, name, value)
			}
		}
		if attached := got.header.Get("Content-Disposition") == "attachment"; attached != (want != "application/json") {
			t.Errorf("%q: Content-Disposition is %q", contentType, got.header.Get("Content-Disposition"))
		}
	}
}

func TestCodesOfTheCluster(t *testing.T) {
	p := start(t, Config{})
	for code, want := range map[int]int{200: 200, 206: 206, 404: 404, 429: 429, 503: 503, 101: 502, 301: 502, 302: 502, 307: 502, 304: 502} {
		p.cluster.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://evil.example/")
			w.WriteHeader(code)
		})
		if got := p.page(p.good("GET", volume)); got.code != want || got.header.Get("Location") != "" {
			t.Errorf("the code %d of the cluster becomes %d", code, got.code)
		}
	}
	// What is only informational does not begin the answer.
	p.cluster.answers(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		listing(w, r)
	})
	if got := p.page(p.good("GET", volume)); got.code != 200 || got.body == "" {
		t.Errorf("behind an informational answer: %d %q", got.code, got.body)
	}
}

// A stream is seen while it goes on, and one that breaks does not look complete.
func TestStreams(t *testing.T) {
	p := start(t, Config{})
	seen := make(chan struct{})
	p.cluster.answers(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first")
		select {
		case <-seen:
			_, _ = io.WriteString(w, "second")
		case <-r.Context().Done():
		}
	})
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1:"+p.Server.page.port+volume+"/log?path=a", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: p.login.name, Value: p.login.secret})
	r.Header.Set("Katbox-Page", p.login.key)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	first := make([]byte, 5)
	if _, err := io.ReadFull(got.Body, first); err != nil || string(first) != "first" {
		t.Fatalf("%q, %v", first, err)
	}
	close(seen)
	if rest, err := io.ReadAll(got.Body); err != nil || string(rest) != "second" {
		t.Errorf("%q, %v", rest, err)
	}
	for what, broken := range map[string]http.HandlerFunc{
		"an abort": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "first")
			panic(http.ErrAbortHandler)
		},
		"too few bytes": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "first")
		},
	} {
		p.cluster.answers(broken)
		if got, err := p.send(p.Server.page.port, p.good("GET", volume+"/log?path=a")); !errors.Is(err, io.ErrUnexpectedEOF) ||
			got.body != "first" {
			t.Errorf("%s: %q, %v", what, got.body, err)
		}
	}
}

func TestPanics(t *testing.T) {
	p := start(t, Config{})
	p.cluster.answers(func(http.ResponseWriter, *http.Request) { panic("why\x1b[2J") })
	if got := p.page(p.good("GET", volume)); got.code != 502 {
		t.Errorf("a handler that panics: %d", got.code)
	}
	if report := <-p.reports; !strings.Contains(report, `why\x1b[2J`) {
		t.Errorf("it is reported as %q", report)
	}
	// One in the server itself ends one connection.
	p.cluster.answers(func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	if got := p.page(p.good("GET", volume)); got.code != 502 {
		t.Errorf("a handler that aborts: %d", got.code)
	}
	p.cluster.answers(listing)
	if got := p.page(p.good("GET", volume)); got.code != 200 {
		t.Errorf("after that: %d", got.code)
	}
	if len(p.reports) > 0 {
		t.Errorf("reported: %q", <-p.reports)
	}
}

// The request to the cluster ends when the browser leaves.
func TestTheBrowserLeaves(t *testing.T) {
	p := start(t, Config{})
	begun, left := make(chan struct{}), make(chan struct{})
	p.cluster.answers(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first")
		close(begun)
		<-r.Context().Done()
		close(left)
	})
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1:"+p.Server.page.port+volume+"/log?path=a", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: p.login.name, Value: p.login.secret})
	r.Header.Set("Katbox-Page", p.login.key)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	got.Body.Close()
	<-left
}
