//go:build e2e

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// replicas are the addresses of the gateway's pods.
func (c *gatewayCluster) replicas() []string {
	c.t.Helper()
	return strings.Fields(c.kubectl("-n", namespace, "get", "pods", "-l", "app.kubernetes.io/name=katbox-gateway",
		"--field-selector=status.phase=Running", "-o", "jsonpath={.items[*].status.podIP}"))
}

// gatewayCA is what the APIService trusts.
func (c *gatewayCluster) gatewayCA() *x509.CertPool {
	c.t.Helper()
	bundle, err := base64.StdEncoding.DecodeString(c.kubectl("get", "apiservice", "v1alpha1.katbox.io", "-o", "jsonpath={.spec.caBundle}"))
	if err != nil {
		c.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		c.t.Fatal("the APIService has no caBundle")
	}
	return pool
}

// direct asks a replica without the API server. It returns the code, or 0 if TLS was refused.
func (c *gatewayCluster) direct(port, path string, header http.Header, certificates ...tls.Certificate) (int, string) {
	c.t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.gatewayCA(), Certificates: certificates,
		ServerName: map[string]string{"10250": "katbox-gateway.katbox.svc", "9443": nodesService + ".katbox.svc"}[port]}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "https://"+net.JoinHostPort(c.replicas()[0], port)+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	maps.Copy(request.Header, header)
	answer, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// certificate makes a certificate of one of the cluster's CAs.
func (c *gatewayCluster) certificate(ca, name string) tls.Certificate {
	c.t.Helper()
	file := ca + "-" + name
	c.tools("cert", "--dir", c.state, "--ca", filepath.Join(c.state, "etc/pki", ca), "--name", file, "--cn", name)
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.state, file+".crt"), filepath.Join(c.state, file+".key"))
	if err != nil {
		c.t.Fatal(err)
	}
	return pair
}

// testTrust: nobody but kube-apiserver says who asks. It covers T1 to T3, and that the certificate is
// really needed: with it the same request is answered.
func (c *gatewayCluster) testTrust() {
	forged := http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}
	path := apiGroup + "/namespaces/ci/retainedvolumes"
	for name, certificates := range map[string][]tls.Certificate{
		"no certificate":           nil,
		"another name":             {c.certificate("front-proxy-ca", "somebody")},
		"the clients' CA":          {c.certificate("ca", frontProxy)},
		"an administrator's":       {c.certificate("ca", "admin")},
		"the name of a person too": {c.certificate("front-proxy-ca", "admin")},
	} {
		if code, body := c.direct("10250", path, forged, certificates...); code != 0 && code != http.StatusUnauthorized {
			c.t.Errorf("%s: %d: %s", name, code, body)
		}
	}
	if code, body := c.direct("10250", path, forged, c.certificate("front-proxy-ca", frontProxy)); code != http.StatusOK {
		c.t.Errorf("kube-apiserver's own certificate: %d: %s", code, body)
	}
	if code, _ := c.direct("10250", "/apis", forged, c.certificate("front-proxy-ca", frontProxy)); code != http.StatusNotAcceptable {
		c.t.Errorf("/apis: %d, want 406", code)
	}
	if insecure := c.kubectl("get", "apiservice", "v1alpha1.katbox.io", "-o", "jsonpath={.spec.insecureSkipTLSVerify}"); insecure == "true" {
		c.t.Error("the APIService verifies no certificate")
	}
}

// testNodeTrust: who may connect as a node. It covers T6, T7 and T10.
func (c *gatewayCluster) testNodeTrust() {
	c.kubectl("-n", namespace, "create", "serviceaccount", "stranger")
	daemon := c.kubectl("-n", namespace, "get", "pods", "-l", "app.kubernetes.io/name=katbox", "--field-selector=spec.nodeName="+c.nodeName(1),
		"-o", "jsonpath={.items[0].metadata.name}")
	token := func(args ...string) string {
		return strings.TrimSpace(c.kubectl(append([]string{"-n", namespace, "create", "token"}, args...)...))
	}
	bound := []string{"--bound-object-kind=Pod", "--bound-object-name=" + daemon}
	connect := func(token, node string) (int, string) {
		return c.direct("9443", "/v1/connect", http.Header{"Authorization": {"Bearer " + token}, "Connection": {"Upgrade"},
			"Upgrade": {"katbox-node/1"}, "Katbox-Node": {node}})
	}
	own := token(append([]string{"katbox", "--audience=katbox-gateway"}, bound...)...)
	for name, tt := range map[string]struct {
		token, node string
		want        []int
	}{
		"no token":                   {"", c.nodeName(1), []int{401}},
		"the API server's audience":  {token(append([]string{"katbox"}, bound...)...), c.nodeName(1), []int{401}},
		"another ServiceAccount":     {token("stranger", "--audience=katbox-gateway"), c.nodeName(1), []int{401, 403}},
		"bound to no pod":            {token("katbox", "--audience=katbox-gateway"), c.nodeName(1), []int{401, 403}},
		"the token of another node":  {own, c.nodeName(2), []int{403}},
		"the token of a deleted pod": {c.deletedPodToken(), c.nodeName(1), []int{401, 403}},
	} {
		code, body := connect(tt.token, tt.node)
		refused := false
		for _, want := range tt.want {
			refused = refused || code == want
		}
		if !refused {
			c.t.Errorf("%s: %d: %s", name, code, body)
		}
	}
	// The same token is no use at the API server.
	if out, err := c.try("", c.kube, "kubectl", "--kubeconfig", "/dev/null", "--server", c.server(), "--insecure-skip-tls-verify",
		"--token", own, "get", "pods"); err == nil ||
		!strings.Contains(err.Error(), "Unauthorized") && !strings.Contains(err.Error(), "logged in") {
		c.t.Errorf("the daemon's token at the API server: %v, %s", err, out)
	}
	if reads := c.tokensRead(); reads == 0 {
		c.t.Error("no token was read by the cluster's keys: may the gateway read them, and does it see its own watch?")
	}
	c.wholeFleet()
}

// tokensRead is how many tokens of daemons the replicas have accepted without a TokenReview.
func (c *gatewayCluster) tokensRead() (reads int) {
	c.t.Helper()
	for _, replica := range c.replicas() {
		text, err := c.try("", "curl", "--silent", "--max-time", "10", "http://"+replica+":8080/metrics")
		if err != nil {
			c.t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			if rest, found := strings.CutPrefix(line, "katbox_gateway_tokens_read_total "); found {
				n, err := strconv.Atoi(strings.TrimSpace(rest))
				if err != nil {
					c.t.Fatal(err)
				}
				reads += n
			}
		}
	}
	return reads
}

func (c *gatewayCluster) server() string {
	c.t.Helper()
	return c.kubectl("config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster.server}")
}

// deletedPodToken is a token of the daemons' ServiceAccount for a pod that is deleted then.
func (c *gatewayCluster) deletedPodToken() string {
	c.t.Helper()
	c.feed(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: gone, namespace: %s}
spec: {serviceAccountName: katbox, nodeName: %s, hostNetwork: true, terminationGracePeriodSeconds: 0,
  containers: [{name: c, image: %s, command: [sleep, "1000"]}]}
`, namespace, c.nodeName(1), c.busybox()), "create", "-f", "-")
	token := strings.TrimSpace(c.kubectl("-n", namespace, "create", "token", "katbox", "--audience=katbox-gateway",
		"--bound-object-kind=Pod", "--bound-object-name=gone"))
	c.kubectl("-n", namespace, "delete", "pod", "gone", "--wait", "--timeout", patience.String())
	// The API server takes a moment to see it.
	c.eventually("the token ends", func() error {
		const review = `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":%q,"audiences":["katbox-gateway"]}}`
		out, err := c.tryKubectl(fmt.Sprintf(review, token),
			"create", "-o", "jsonpath={.status.authenticated}", "-f", "-")
		if err != nil {
			return err
		}
		if out == "true" {
			return errStillThere
		}
		return nil
	})
	return token
}
