package kubeapi

import (
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// server answers with TLS.
func server(t *testing.T, answer http.HandlerFunc) (*httptest.Server, []byte) {
	t.Helper()
	s := httptest.NewUnstartedServer(answer)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func dial(t *testing.T, s *httptest.Server, dir string) *Client {
	t.Helper()
	c, err := New(Config{Server: s.URL + "/", Credentials: dir, CHAPNamespace: "katbox-chap"})
	must(t, err)
	c.patience = 2 * time.Minute
	return c
}

// TestCredentialsAreReadAnew: the kubelet replaces the token each hour, and the CA may be rotated.
func TestCredentialsAreReadAnew(t *testing.T) {
	var got []string
	s, ca := server(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization")+" "+r.Proto)
		_, _ = io.WriteString(w, `{"metadata":{"uid":"u"}}`)
	})
	dir := credentials(t, "one", ca)
	c := dial(t, s, dir)
	ask := func(want string) {
		t.Helper()
		_, err := c.ClusterID(t.Context())
		if want == "" {
			must(t, err)
		} else if !errors.Is(err, volume.ErrUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("asked: %v, want %q", err, want)
		}
	}
	ask("")
	write(t, dir, "token", []byte("two"))
	ask("")
	_, other := otherCA(t)
	write(t, dir, "ca.crt", other)
	ask("certificate signed by unknown authority")
	write(t, dir, "ca.crt", append(other, ca...))
	ask("")
	write(t, dir, "ca.crt", []byte("no certificate"))
	ask("ca.crt has no certificate")
	c.cfg.Credentials = filepath.Join(dir, "gone")
	ask("no such file")
	if want := "Bearer one HTTP/1.1, Bearer two HTTP/1.1, Bearer two HTTP/1.1"; strings.Join(got, ", ") != want {
		t.Errorf("asked with %q, want %q", got, want)
	}
}

func TestATokenGoesToNoOtherServer(t *testing.T) {
	s, ca := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/there" {
			t.Error("the redirect was followed")
		}
		http.Redirect(w, r, "/there", http.StatusFound)
	})
	if _, err := dial(t, s, credentials(t, "one", ca)).ClusterID(t.Context()); !errors.Is(err, volume.ErrUnavailable) ||
		!strings.Contains(err.Error(), "302") {
		t.Errorf("a redirect: %v", err)
	}
}

// TestErrorsSayWhatToDo, with answers as API servers give them.
func TestErrorsSayWhatToDo(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"MESSAGE","reason":"X","details":{"name":"NAME"}}`
	said := func(message, name string) string {
		return strings.NewReplacer("MESSAGE", message, "NAME", name).Replace(status)
	}
	for name, tt := range map[string]struct {
		code int
		text string
		is   error
		want []string
	}{
		"a right is missing": {403,
			said(`poolnodes.pools.katbox.io \"node-1\" is forbidden: User \"system:serviceaccount:katbox:katbox\" cannot get resource`, "node-1"),
			volume.ErrUnavailable, []string{"get the PoolNode node-1: ", "lacks the right to get poolnodes of pools.katbox.io",
				"install the manifests", "system:serviceaccount:katbox:katbox"}},
		"the admission policy": {403,
			said(`poolnodes.pools.katbox.io \"node-1\" is forbidden: ValidatingAdmissionPolicy 'katbox-nodes' denied request: a node`, "node-1"),
			volume.ErrUnavailable, []string{"refuses it: 403", "ValidatingAdmissionPolicy 'katbox-nodes'"}},
		"no definitions":    {404, "404 page not found\n", volume.ErrUnavailable, []string{"the cluster has no PoolNodes", "deploy/crds"}},
		"no such token":     {401, said("Unauthorized", ""), volume.ErrUnavailable, []string{"does not accept the token in /"}},
		"too many requests": {429, said("too many", ""), volume.ErrUnavailable, []string{"429 too many"}},
		"starting": {503, "<html>\n<h1>Service\tUnavailable</h1>", volume.ErrUnavailable,
			[]string{"503 <html> <h1>Service Unavailable</h1>"}},
		"not Kubernetes":     {200, "hello", volume.ErrUnavailable, []string{"is not what Kubernetes says"}},
		"a very long answer": {500, strings.Repeat("é", 1000), volume.ErrUnavailable, []string{"é..."}},
	} {
		t.Run(name, func(t *testing.T) {
			s, ca := server(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.code)
				_, _ = io.WriteString(w, tt.text)
			})
			_, err := dial(t, s, credentials(t, "secret-token", ca)).EnsureNode(t.Context(), NewNode{Name: "node-1",
				Addresses: []string{"10.0.0.1"}})
			if !errors.Is(err, tt.is) {
				t.Fatalf("the error is %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, without %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "secret-token") || strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000 {
				t.Errorf("the error is %q", err)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	env := map[string]string{"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
	if url, err := InCluster(func(k string) string { return env[k] }); err != nil || url != "https://[fd00::1]:443" {
		t.Errorf("the URL is %q, error %v", url, err)
	}
	if _, err := InCluster(func(string) string { return "" }); err == nil {
		t.Error("outside of a pod there is a URL")
	}
	for _, cfg := range []Config{
		{Credentials: "/c", CHAPNamespace: "n"},
		{Server: "ftp://x", Credentials: "/c", CHAPNamespace: "n"},
		{Server: "https:///x", Credentials: "/c", CHAPNamespace: "n"},
		{Server: "https://x", CHAPNamespace: "n"},
		{Server: "https://x", Credentials: "/c"},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
