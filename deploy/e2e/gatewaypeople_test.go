//go:build e2e

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// person is somebody who asks the API server.
type person struct {
	*gatewayCluster
	name, kubeconfig string
}

// The people of the tests, in namespace ci: alice may view, bob may edit, carol may view and has a
// client certificate, dave has no right at all. Erin may edit in namespace other alone, and has a client
// certificate.
const (
	alice = "alice"
	bob   = "bob"
	carol = "carol"
	dave  = "dave"
	erin  = "erin"
)

// people makes the namespaces, the people and their rights.
func (c *gatewayCluster) people() {
	c.t.Helper()
	for _, ns := range []string{"ci", "other"} {
		c.kubectl("create", "namespace", ns)
	}
	c.tools("kubeconfig", "--user", alice, "--out", c.kubeconfigOf(alice))
	c.tools("kubeconfig", "--user", bob, "--out", c.kubeconfigOf(bob))
	for _, who := range []string{carol, dave, erin} {
		c.tools("cert", "--dir", c.state, "--ca", filepath.Join(c.state, "etc/pki/ca"), "--name", who, "--cn", who)
		c.tools("kubeconfig", "--cert", filepath.Join(c.state, who), "--out", c.kubeconfigOf(who))
	}
	for who, role := range map[string]string{alice: "view", bob: "edit", carol: "view"} {
		c.kubectl("-n", "ci", "create", "rolebinding", who, "--clusterrole="+role, "--user="+who)
	}
	c.kubectl("-n", "other", "create", "rolebinding", erin, "--clusterrole=edit", "--user="+erin)
}

func (c *gatewayCluster) kubeconfigOf(who string) string {
	return filepath.Join(c.state, who+".kubeconfig")
}

// tools runs rktool.
func (c *gatewayCluster) tools(args ...string) string {
	c.t.Helper()
	if args[0] == "kubeconfig" {
		args = append(args, "--kubeconfig", filepath.Join(c.state, "kubeconfig"), "--tokens", filepath.Join(c.state, "etc/tokens.csv"))
	}
	out, err := c.try("", c.tool, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// as returns one of the people.
func (c *gatewayCluster) as(who string) person { return person{c, who, c.kubeconfigOf(who)} }

// admin may do everything.
func (c *gatewayCluster) admin() person {
	return person{c, "admin", filepath.Join(c.state, "kubeconfig")}
}

// kubectlOf runs kubectl as a person.
func (p person) run(args ...string) (string, error) {
	return p.try("", p.kube, append([]string{"kubectl", "--kubeconfig", p.kubeconfig}, args...)...)
}

// can runs kubectl, which has to succeed.
func (p person) can(args ...string) string {
	p.t.Helper()
	out, err := p.run(args...)
	if err != nil {
		p.t.Errorf("%s: %v", p.name, err)
	}
	return out
}

// cannot runs kubectl, which has to fail with a message that has each part.
func (p person) cannot(parts []string, args ...string) {
	p.t.Helper()
	out, err := p.run(args...)
	if err == nil {
		p.t.Errorf("%s: kubectl %q succeeds and prints %q", p.name, args, out)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			p.t.Errorf("%s: kubectl %q: %q is not in %v", p.name, args, part, err)
		}
	}
}

// read reads JSON from the API.
func (p person) read(v any, path string) error {
	out, err := p.run("get", "--raw", path)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), v)
}

// list returns the retained volumes of a namespace, "" for all.
func (p person) list(ns, query string) rvList {
	p.t.Helper()
	path := apiGroup + "/retainedvolumes"
	if ns != "" {
		path = apiGroup + "/namespaces/" + ns + "/retainedvolumes"
	}
	var list rvList
	if err := p.read(&list, path+"?"+query); err != nil {
		p.t.Errorf("%s: %v", p.name, err)
	}
	return list
}

// restConfig is what a kubeconfig of the cluster has.
type restConfig struct {
	Clusters []struct {
		Cluster struct {
			Server               string
			CertificateAuthority string `json:"certificate-authority"`
			Data                 []byte `json:"certificate-authority-data"`
		}
	}
	Users []struct {
		User struct {
			Token string
			Cert  string `json:"client-certificate"`
			Key   string `json:"client-key"`

			CertData []byte `json:"client-certificate-data"`
			KeyData  []byte `json:"client-key-data"`
		}
	}
}

// client returns an HTTP client with a person's credentials, and the API server's URL.
func (p person) client() (*http.Client, string) {
	p.t.Helper()
	out, err := p.run("config", "view", "--raw", "--flatten", "-o", "json")
	if err != nil {
		p.t.Fatal(err)
	}
	var config restConfig
	if err := json.Unmarshal([]byte(out), &config); err != nil {
		p.t.Fatal(err)
	}
	cluster, user := config.Clusters[0].Cluster, config.Users[0].User
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cluster.Data)
	settings := &tls.Config{RootCAs: pool}
	if len(user.CertData) > 0 {
		pair, err := tls.X509KeyPair(user.CertData, user.KeyData)
		if err != nil {
			p.t.Fatal(err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true, DisableCompression: true}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: bearer{transport, user.Token},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, cluster.Server
}

// bearer sends a token with each request.
type bearer struct {
	http.RoundTripper
	token string
}

// RoundTrip sends a request.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.RoundTripper.RoundTrip(r)
}

// ask sends a request and returns the whole answer.
func (p person) ask(method, path string, header http.Header) (*http.Response, string) {
	p.t.Helper()
	client, server := p.client()
	request, err := http.NewRequestWithContext(p.t.Context(), method, server+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	maps.Copy(request.Header, header)
	answer, err := client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Errorf("%s %s: %v", method, path, err)
	}
	if answer.StatusCode/100 == 3 && answer.StatusCode != http.StatusNotModified {
		p.t.Errorf("%s %s redirects: %s", method, path, answer.Status)
	}
	return answer, string(body)
}

// wantCode fails unless a request is answered with a code.
func (p person) wantCode(code int, path string) string {
	p.t.Helper()
	began := time.Now()
	answer, body := p.ask(http.MethodGet, path, nil)
	if answer.StatusCode != code {
		p.t.Errorf("%s: GET %s: %s after %s, want %d: %.300s", p.name, path, answer.Status, time.Since(began), code, body)
	}
	return body
}

// secret reads a file of the cluster.
func (c *gatewayCluster) secret(path string) []byte {
	c.t.Helper()
	content, err := os.ReadFile(filepath.Join(c.state, path))
	if err != nil {
		c.t.Fatal(err)
	}
	return content
}

func (v rv) String() string { return fmt.Sprintf("%s/%s", v.Metadata.Namespace, v.Metadata.Name) }
