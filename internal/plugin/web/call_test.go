package web

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
)

func TestCalls(t *testing.T) {
	for target, want := range map[string]call{
		"/apis/katbox.io/v1alpha1/retainedvolumes": {},
		base:              {"ci", "", ""},
		volume:            {"ci", name, ""},
		volume + "/files": {"ci", name, "files"},
		volume + "/log":   {"ci", name, "log"},
		base + "/-/log":   {"ci", "-", "log"},
		"/apis/katbox.io/v1alpha1/retainedvolumes/-/log": {"", "-", "log"},
		base + "/a..b.q3fd7k2m9c4a":                      {"ci", "a..b.q3fd7k2m9c4a", ""}, // a pod's name that was cut at a dot
	} {
		if got, ok := parsePath(target); !ok || got != want || got.path() != target {
			t.Errorf("%s is %+v, %t", target, got, ok)
		}
	}
}

// Whatever is forwarded is a retained volume's, also if it is cleaned, decoded again, or both.
func FuzzCall(f *testing.F) {
	for target := range targets {
		f.Add(target)
	}
	for _, target := range []string{base + "/../x", base + "/%2e%2e", "//x",
		"/apis/katbox.io/v1alpha1/namespaces/a/../retainedvolumes", "http://x/", volume + "/log?a=%zz"} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		c, ok := parseCall(&http.Request{Method: "GET", URL: u})
		if !ok {
			return
		}
		if c.path() != u.Path {
			t.Fatalf("%q is not %q", u.Path, c.path())
		}
		if path.Clean(u.Path) != u.Path || strings.ContainsAny(u.Path, "%\\ \x00") {
			t.Fatalf("%q has another form", u.Path)
		}
		if again, err := url.ParseRequestURI(c.path()); err != nil || again.Path != c.path() || again.Host != "" || again.RawQuery != "" {
			t.Fatalf("%q is read as %v, %v", c.path(), again, err)
		}
		elements := strings.Split(c.path(), "/")
		rest := elements[4:]
		if strings.Join(elements[:4], "/") != "/apis/katbox.io/v1alpha1" || rest[0] != "retainedvolumes" && (len(rest) < 3 ||
			rest[0] != "namespaces" || rest[2] != "retainedvolumes") {
			t.Fatalf("%q is not of retained volumes", c.path())
		}
	})
}
