package page

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestSite: what stands in for the cluster does what the tests take for granted. A reader sees and
// reads volumes of his namespace, and the API server refuses all else.
func TestSite(t *testing.T) {
	var name string
	s := newSite(t, map[string]func(*node){"n1": func(n *node) {
		var path string
		name, path = n.put(func(d *volume.Description) { d.Record.PodName = "nightly-29000000-x7k2p" })
		must(t, os.WriteFile(filepath.Join(path, "a&b;c.txt"), []byte("words"), 0o600))
	}}, "n2")
	list := katboxAPI + "/namespaces/ci/retainedvolumes"
	for _, tt := range []struct {
		who, method, path string
		code              int
		has               string
	}{
		{"token-of-vera", http.MethodGet, list, http.StatusOK, name},
		{"token-of-vera", http.MethodGet, list, http.StatusOK, `"missing":[{"node":"n2"`},
		{"token-of-alice", http.MethodGet, list + "/" + name + "/log?path=a%26b%3Bc.txt", http.StatusOK, "words"},
		{"token-of-vera", http.MethodGet, list + "/" + name + "/log?path=a%26b%3Bc.txt", http.StatusForbidden, "retainedvolumes/log"},
		{"token-of-bob", http.MethodGet, list, http.StatusForbidden, "forbidden"},
		{"token-of-alice", http.MethodGet, katboxAPI + "/retainedvolumes", http.StatusForbidden, "forbidden"},
		{"token-of-root", http.MethodGet, katboxAPI + "/retainedvolumes", http.StatusOK, name},
		{"token-of-root", http.MethodGet, "/api/v1/namespaces/ci/secrets/x", http.StatusOK, canary},
		{"token-of-alice", http.MethodGet, "/api/v1/namespaces/ci/secrets/x", http.StatusForbidden, "forbidden"},
		{"token-of-alice", http.MethodDelete, list + "/" + name, http.StatusOK, ""},
		{"token-of-alice", http.MethodGet, list + "/" + name, http.StatusNotFound, ""},
		{"wrong", http.MethodGet, list, http.StatusUnauthorized, ""},
	} {
		if code, _, text := s.ask(tt.who, tt.method, tt.path); code != tt.code || !strings.Contains(text, tt.has) {
			t.Errorf("%s %s as %s: %d %s, want %d with %q", tt.method, tt.path, tt.who, code, text, tt.code, tt.has)
		}
	}
}
