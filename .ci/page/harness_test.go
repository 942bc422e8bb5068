package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// TestHarness: what the other tests rely on is noticed when it happens.
func TestHarness(t *testing.T) {
	b := newBeacon(t)
	var page string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Security-Policy", r.URL.Query().Get("csp"))
			fmt.Fprint(w, page)
		case "/frame":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<script>%s</script>", b.script("frame"))
		case "/file":
			w.Header().Set("Content-Disposition", `attachment; filename="a b.txt"`)
			fmt.Fprint(w, "content")
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	v := newVisitor(t)

	page = "<title>quiet</title><p>words"
	must(t, v.visit(server.URL+"/page"))
	v.sees("words")
	b.wantSilence(v, "a quiet page")
	_, host, _ := strings.Cut(server.URL, "//")
	v.wantQuiet(host)

	page = "<script>" + b.script("page") + "</script><p>loud"
	must(t, v.visit(server.URL+"/page"))
	v.sees("loud")
	for _, part := range []string{"/ran/page", "title is " + ran} {
		found := false
		eventually(t, part+" is heard", func() bool {
			found = found || slices.ContainsFunc(b.heard(v), func(heard string) bool { return contains(heard, part) })
			return found
		})
	}

	page = `<iframe src="` + strings.Replace(server.URL, "127.0.0.1", rebound, 1) + `/frame"></iframe><p>framed`
	must(t, v.visit(server.URL+"/page"))
	eventually(t, "the frame's script is heard", func() bool {
		return slices.ContainsFunc(v.said(), func(said string) bool { return contains(said, ran+" frame") })
	})
	b.heard(v)

	page = `<img src="http://elsewhere.example/x.png"><script>1</script><p>violates`
	must(t, v.visit(server.URL+"/page?csp=script-src+'none'"))
	v.sees("violates")
	eventually(t, "the violation and the request are noticed", func() bool {
		return slices.ContainsFunc(v.said(), func(said string) bool { return contains(said, "Content Security Policy") }) &&
			slices.ContainsFunc(v.asked(), func(r request) bool { return r.url == "http://elsewhere.example/x.png" })
	})

	page = "<p>files"
	_ = v.visit(server.URL + "/file")
	if name, content := v.downloaded(0); name != "a b.txt" || string(content) != "content" {
		t.Errorf("downloaded %q: %q", name, content)
	}
}
