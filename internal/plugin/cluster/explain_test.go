package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

const someVolume = "nightly-x7k2p.q3fd7k2m9c4a"

// does is what a user does, in namespace ci or in all.
var does = map[string]func(context.Context, *Client) error{
	"list": func(ctx context.Context, c *Client) error {
		_, err := c.List(ctx, Query{Namespace: "ci"})
		return err
	},
	"list all": func(ctx context.Context, c *Client) error {
		_, err := c.List(ctx, Query{})
		return err
	},
	"get": func(ctx context.Context, c *Client) error {
		_, err := c.Get(ctx, "ci", someVolume)
		return err
	},
	"files": func(ctx context.Context, c *Client) error {
		_, err := c.Files(ctx, ID("ci", someVolume), api.FilesQuery{})
		return err
	},
	"bytes": func(ctx context.Context, c *Client) error {
		_, err := c.Bytes(ctx, ID("ci", someVolume), api.BytesQuery{Path: "x"})
		return err
	},
	"keep": func(ctx context.Context, c *Client) error {
		_, err := c.Unpin(ctx, "ci", someVolume)
		return err
	},
	"delete": func(ctx context.Context, c *Client) error { return c.Purge(ctx, "ci", someVolume, "") },
}

// wantExplained wants an explanation with an exit code and these parts.
func wantExplained(t *testing.T, err error, code int, parts ...string) {
	t.Helper()
	e := (*Explained)(nil)
	if !errors.As(err, &e) || e.ExitCode() != code {
		t.Errorf("%v: want an explanation with the exit code %d", err, code)
		return
	}
	for _, part := range parts {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q lacks %q", e, part)
		}
	}
}

// TestExplainForbidden says what the user may do, which right is missing, and which role has it.
func TestExplainForbidden(t *testing.T) {
	c := clustertest.New(t)
	c.Grant("stranger", "other", View)
	for _, row := range []struct {
		user, does string
		parts      []string
	}{
		{"stranger", "list", []string{"user stranger may not list retained volumes in namespace ci: that takes list on retainedvolumes " +
			"in the API group katbox.io, which the role view includes; an administrator of the namespace can give it"}},
		{"eve", "list all", []string{"user eve may not list retained volumes in all namespaces", "ClusterRoleBinding", "with -n"}},
		{"stranger", "get", []string{"user stranger may not see this retained volume in namespace ci", "role view"}},
		{"vic", "files", []string{"user vic may list retained volumes in namespace ci, and not read their files: " +
			"that takes get on retainedvolumes/files (and /log) in the API group katbox.io, which the role edit includes"}},
		{"vic", "bytes", []string{"user vic may list retained volumes in namespace ci, and not read their files"}},
		{"vic", "delete", []string{
			"user vic may list retained volumes in namespace ci, and not delete them: that takes delete on retainedvolumes", "edit",
		}},
		{"eve", "keep", []string{
			"user eve may list retained volumes in namespace ci, and not keep them longer: that takes patch on retainedvolumes", "katbox-keep",
			"an administrator of the cluster can give it",
		}},
		{"stranger", "files", []string{"user stranger may not read the files of retained volumes in namespace ci", "edit"}},
		{"stranger", "delete", []string{"user stranger may not delete retained volumes in namespace ci", "edit"}},
	} {
		t.Run(row.user+" "+row.does, func(t *testing.T) {
			client := connect(t, c, row.user)
			err := client.Explain(t.Context(), ID("ci", someVolume), does[row.does](t.Context(), client))
			wantExplained(t, err, codeFailed, row.parts...)
			wantCode(t, "the cause", err, http.StatusForbidden)
		})
	}
}

// View is the role of the tests.
const View = clustertest.View

// TestExplainForbiddenWithoutReviews: an old API server does not tell who the user is.
func TestExplainForbiddenWithoutReviews(t *testing.T) {
	c := clustertest.New(t)
	c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "reviews") {
			http.NotFound(w, r)
			return true
		}
		return false
	})
	client := connect(t, c, "vic")
	err := client.Explain(t.Context(), "", does["files"](t.Context(), client))
	wantExplained(t, err, codeFailed, "user vic may not read the files of retained volumes in namespace ci")
}

// TestExplainWithoutGateway: for users with all rights, for those whom the API server refuses since it
// knows no such resource, and while the gateway does not run.
func TestExplainWithoutGateway(t *testing.T) {
	c := clustertest.New(t)
	c.Down(true)
	for name, do := range does {
		if name != "list all" {
			client := connect(t, c, "kim")
			err := client.Explain(t.Context(), ID("ci", someVolume), do(t.Context(), client))
			wantExplained(t, err, codeFailed, "service unavailable", "gateway does not answer", "kubectl get apiservice v1alpha1.katbox.io")
		}
	}
	c.Uninstall()
	for _, user := range []string{"admin", "vic"} {
		client := connect(t, c, user)
		for _, do := range does {
			err := client.Explain(t.Context(), ID("ci", someVolume), do(t.Context(), client))
			wantExplained(t, err, codeFailed, "this cluster ("+c.URL()+") has no APIService v1alpha1.katbox.io; install Katbox")
		}
	}
}

// TestExplainNotFound: a volume that is gone has an exit code of its own, and a path that does not exist
// has not.
func TestExplainNotFound(t *testing.T) {
	c := clustertest.New(t)
	name, _ := c.Node("n1").Put(1, "ci", "nightly", "nightly-x7k2p")
	client := connect(t, c, "eve")
	_, err := client.Files(t.Context(), ID("ci", name), api.FilesQuery{Path: "nothing"})
	wantExplained(t, client.Explain(t.Context(), ID("ci", name), err), codeFailed, "nothing")
	for _, name := range []string{"get", "files", "bytes", "delete"} {
		err := client.Explain(t.Context(), ID("ci", someVolume), does[name](t.Context(), client))
		wantExplained(t, err, codeNoVolume, someVolume, "expired", "another namespace than ci")
	}
	c.Lost("n7")
	// Its name is that of another node's volume now: it may be there or not.
	_, err = client.Get(t.Context(), "ci", lostVolume(c))
	wantExplained(t, client.Explain(t.Context(), "", err), codeFailed, "n7", "try again in 10s", "kubectl get nodes")
}

// lostVolume returns the name of a volume on the node n7, which is not connected.
func lostVolume(c *clustertest.Cluster) string { return clustertest.Name("nightly-x7k2p", "n7", 1) }

// TestExplainAnswers: each answer says what to do.
func TestExplainAnswers(t *testing.T) {
	status := func(code int, reason api.Reason) string {
		return fmt.Sprintf(`{"kind":"Status","status":"Failure","code":%d,"reason":%q,"message":"as it is"}`, code, reason)
	}
	for _, row := range []struct {
		does, body string
		code       int
		exit       int
		parts      []string
	}{
		{"list", status(401, "Unauthorized"), 401, 1, []string{"as it is", "does not accept your credentials", "--context"}},
		{"list", "<html>proxy</html>", 502, 1, []string{"the API server answered 502 Bad Gateway"}},
		{"get", status(409, api.Conflict), 409, 1, []string{"as it is", "kubectl exec"}},
		{"bytes", status(410, "Gone"), 410, 4, []string{"as it is"}},
		{"list", status(410, api.Expired), 410, 1, []string{"as it is", "run the command again"}},
		{"bytes", status(416, api.RangeNotValid), 416, 1, []string{"as it is"}},
		{"list", status(429, api.TooManyRequests), 429, 1, []string{"as it is", "try again later"}},
		{"list", status(500, api.InternalError), 500, 1, []string{"as it is"}},
		{"get", status(504, api.Timeout), 504, 1, []string{"as it is", "try again"}},
		{"get", "moved", 302, 1, []string{"302 Found", "moved"}},
	} {
		t.Run(fmt.Sprint(row.code, row.does), func(t *testing.T) {
			c := clustertest.New(t)
			client := connect(t, c, "eve")
			c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(row.code)
				fmt.Fprint(w, row.body)
				return true
			})
			err := client.Explain(t.Context(), "", does[row.does](t.Context(), client))
			wantExplained(t, err, row.exit, row.parts...)
			wantCode(t, "the cause", err, row.code)
			for _, asked := range c.Requests() {
				if strings.Contains(asked, "elsewhere") {
					t.Errorf("a redirect was followed: %s", asked)
				}
			}
		})
	}
}

// TestExplainUnreachable: where there is no answer at all.
func TestExplainUnreachable(t *testing.T) {
	c := clustertest.New(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	stranger := c.Config("eve")
	stranger.CAData = nil
	other := c.Config("eve")
	other.ServerName = "other.example"
	expired := newExpired(t)
	for name, row := range map[string]struct {
		config *rest.Config
		parts  []string
	}{
		"nothing listens":   {&rest.Config{Host: gone.URL}, []string{gone.URL, "cannot be reached", "--context"}},
		"another authority": {stranger, []string{"certificate", "kubeconfig", "--certificate-authority"}},
		"no credentials": {&rest.Config{Host: c.URL(), TLSClientConfig: rest.TLSClientConfig{CAData: c.Config("eve").CAData},
			ExecProvider: &clientcmdapi.ExecConfig{Command: "false", APIVersion: "client.authentication.k8s.io/v1",
				InteractiveMode: clientcmdapi.NeverExecInteractiveMode}},
			[]string{"credentials of the kubeconfig", "false failed with exit code 1", "log in"}},
		"an expired certificate": {&rest.Config{Host: expired.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(
			&pem.Block{Type: "CERTIFICATE", Bytes: expired.Certificate().Raw})}},
			[]string{"certificate of the API server " + expired.URL + " has expired, or the clock of this machine is wrong"}},
		"another server name": {other, []string{"certificate", "other.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := New(row.config, "ci")
			must(t, err)
			wantExplained(t, client.Explain(t.Context(), "", does["list"](t.Context(), client)), codeFailed, row.parts...)
		})
	}
	client := connect(t, c, "eve")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := client.Explain(ctx, "", does["list"](ctx, client)); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if client.Explain(t.Context(), "", nil) != nil {
		t.Error("nil is explained")
	}
}

// newExpired starts a server with a certificate that was valid until yesterday.
func newExpired(t *testing.T) *httptest.Server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().AddDate(0, 0, -2), NotAfter: time.Now().AddDate(0, 0, -1),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	must(t, err)
	server := httptest.NewUnstartedServer(nil)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}
