package page

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// site is a cluster: an API server, a gateway and nodes.
type site struct {
	*apiServer
	t     testing.TB
	nodes map[string]*node
}

// newSite starts a cluster. The nodes in fill are connected, the missing ones are expected only.
func newSite(t testing.TB, fill map[string]func(*node), missing ...string) *site {
	t.Helper()
	expected := missing
	for name := range fill {
		expected = append(expected, name)
	}
	proxies := newAuthority(t, "front proxies")
	g := newGateway(t, proxies, expected)
	s := &site{apiServer: newAPIServer(t, g.address, g.ca, proxies), t: t, nodes: map[string]*node{}}
	for name, fill := range fill {
		s.nodes[name] = newNode(t, name, g, fill)
	}
	return s
}

// kubeconfig writes one for the bearer of a token, or, if certificate is set, for a user of that name
// with a client certificate.
func (s *site) kubeconfig(token, certificate string) string {
	s.t.Helper()
	user := map[string]any{"token": token}
	if certificate != "" {
		pair := s.clients.issue(s.t, certificate, x509.ExtKeyUsageClientAuth)
		user = clientCertificate(s.t, pair)
	}
	config := map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{map[string]any{"name": "test", "cluster": map[string]any{
			"server": s.http.URL, "certificate-authority-data": s.serving.pem(),
		}}},
		"users":    []any{map[string]any{"name": "me", "user": user}},
		"contexts": []any{map[string]any{"name": "test", "context": map[string]any{"cluster": "test", "user": "me", "namespace": "ci"}}},
	}
	text, err := json.Marshal(config)
	must(s.t, err)
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	must(s.t, os.WriteFile(path, text, 0o600))
	return path
}

// ask sends a request to the API server, as a person.
func (s *site) ask(token, method, path string) (int, http.Header, string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.http.URL+path, nil)
	must(s.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	trusts := &tls.Config{RootCAs: s.serving.pool(), MinVersion: tls.VersionTLS12}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusts}}
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	must(s.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(s.t, err)
	return answer.StatusCode, answer.Header, string(text)
}

// has returns the status of a request for a volume: 200 or 404.
func (s *site) has(name string) int {
	code, _, _ := s.ask("token-of-alice", http.MethodGet, katboxAPI+"/namespaces/ci/retainedvolumes/"+name)
	return code
}

// hoursAgo is a time for records.
func hoursAgo(hours float64) time.Time {
	return time.Now().Add(-time.Duration(hours * float64(time.Hour)))
}
