package trust_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/katbox/katbox/internal/gateway/trust"
)

// configMap is what an API server of these authorities publishes.
func configMap(proxies, clients *authority, names string) *corev1.ConfigMap {
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"},
		Data: map[string]string{
			"requestheader-client-ca-file":       proxies.pem(),
			"requestheader-allowed-names":        names,
			"requestheader-username-headers":     `["X-Remote-User"]`,
			"requestheader-uid-headers":          `["X-Remote-Uid"]`,
			"requestheader-group-headers":        `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		},
	}
	if clients != nil {
		config.Data["client-ca-file"] = clients.pem()
	}
	return config
}

// seen is what the server of a test answers.
type seen struct {
	User, UID string
	Groups    []string
	Extra     map[string][]string
	Left      http.Header
	Error     string
	Proto     string
}

// gateway is a server that asks an Authenticator.
type gateway struct {
	*trust.Authenticator
	client  *fake.Clientset
	address string
	roots   *x509.CertPool
	log     *lines
	// handshakes are those that failed, a line each; answered are the requests that got past them.
	handshakes *lines
	answered   atomic.Int64
}

// start runs an Authenticator and a server with its TLS configuration.
func start(t *testing.T, config *corev1.ConfigMap) *gateway {
	t.Helper()
	g := &gateway{client: fake.NewClientset(config), log: new(lines), handshakes: new(lines), roots: x509.NewCertPool()}
	var err error
	if g.Authenticator, err = trust.NewAuthenticator(trust.AuthenticatorConfig{Client: g.client, Log: g.log.logger()}); err != nil {
		t.Fatal(err)
	}
	if g.Ready() == nil {
		t.Error("ready before Start")
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		g.Wait()
	})
	if err := g.Start(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ConfigMap is watched", watched(g.client))
	serving := newAuthority("serving", nil)
	g.roots.AddCert(serving.cert)
	certificate := serving.issue("gateway", x509.ExtKeyUsageServerAuth)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.address = listener.Addr().String()
	server := &http.Server{
		Handler:   http.HandlerFunc(g.answer),
		TLSConfig: g.TLSConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }),
		ErrorLog:  log.New(g.handshakes, "", 0),
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		server.Close()
		ended.Wait()
	})
	return g
}

func (g *gateway) answer(w http.ResponseWriter, r *http.Request) {
	g.answered.Add(1)
	s := seen{Proto: r.Proto}
	who, err := g.Authenticate(r)
	var unauthenticated *trust.UnauthenticatedError
	switch {
	case errors.As(err, &unauthenticated):
		s.Error = unauthenticated.Reason
		w.WriteHeader(http.StatusUnauthorized)
	case err != nil:
		s.Error = err.Error()
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		s.User, s.UID, s.Groups, s.Extra, s.Left = who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra(), r.Header
	}
	_ = json.NewEncoder(w).Encode(s) // The client sees it.
}

// failedHandshakes counts those in which a client showed a certificate that was refused.
func (g *gateway) failedHandshakes() int {
	return strings.Count(g.handshakes.String(), "tls: failed to verify certificate")
}

// caller is a client that shows the certificate, also to a server that did not ask for it.
func (g *gateway) caller(t *testing.T, certificate *tls.Certificate) *http.Client {
	config := &tls.Config{RootCAs: g.roots, ServerName: "gateway.test", NextProtos: []string{"h2"}}
	if certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 2 * time.Minute}
}

// ask sends one request.
func (g *gateway) ask(t *testing.T, client *http.Client, header http.Header) (int, seen, error) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "https://"+g.address+"/apis/katbox.io/v1alpha1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	response, err := client.Do(r)
	if err != nil {
		return 0, seen{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var s seen
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, s, nil
}

var alice = http.Header{
	"X-Remote-User":                  {"alice"},
	"X-Remote-Uid":                   {"42"},
	"X-Remote-Group":                 {"team", "system:authenticated"},
	"X-Remote-Extra-Scopes.io%2fkey": {"a", "b"},
	"Accept":                         {"application/json"},
}

func TestFrontProxyIsBelieved(t *testing.T) {
	proxies, clients := newAuthority("proxies", nil), newAuthority("clients", nil)
	g := start(t, configMap(proxies, clients, `["front-proxy-client"]`))
	if err := g.Ready(); err != nil {
		t.Error(err)
	}
	for name, certificate := range map[string]*tls.Certificate{
		"of the CA":              proxies.issue("front-proxy-client", x509.ExtKeyUsageClientAuth),
		"of an intermediate one": newAuthority("intermediate", proxies).issue("front-proxy-client", x509.ExtKeyUsageClientAuth),
	} {
		t.Run(name, func(t *testing.T) {
			code, got, err := g.ask(t, g.caller(t, certificate), alice)
			if err != nil || code != http.StatusOK {
				t.Fatal(code, got.Error, err)
			}
			for name := range got.Left {
				if strings.HasPrefix(name, "X-Remote-") {
					t.Errorf("the header %s is left", name)
				}
			}
			got.Left = nil
			want := seen{User: "alice", UID: "42", Groups: alice["X-Remote-Group"],
				Extra: map[string][]string{"scopes.io/key": {"a", "b"}}, Proto: "HTTP/2.0"}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

func TestOthersAreNotBelieved(t *testing.T) {
	proxies, clients := newAuthority("proxies", nil), newAuthority("clients", nil)
	g := start(t, configMap(proxies, clients, `["front-proxy-client"]`))
	ended := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	for _, test := range []struct {
		name        string
		certificate *tls.Certificate
		header      http.Header
		// reason is of the answer, which is a 401. It is empty if the handshake fails.
		reason string
	}{
		{"T1: no certificate", nil, alice, "no client certificate"},
		{"T2: another name", proxies.issue("kubelet", x509.ExtKeyUsageClientAuth), alice, "cn=kubelet is not in the allowed list"},
		{"no name", proxies.issue("", x509.ExtKeyUsageClientAuth), alice, "is not in the allowed list"},
		{"no user", proxies.issue("front-proxy-client", x509.ExtKeyUsageClientAuth), http.Header{"X-Remote-Group": {"system:masters"}},
			"names no user"},
		{"T3: of the clients' CA", clients.issue("front-proxy-client", x509.ExtKeyUsageClientAuth), alice, ""},
		{"of nobody's CA", newAuthority("proxies", nil).issue("front-proxy-client", x509.ExtKeyUsageClientAuth), alice, ""},
		{"of a server", proxies.issue("front-proxy-client", x509.ExtKeyUsageServerAuth), alice, ""},
		{"ended", proxies.issue("front-proxy-client", x509.ExtKeyUsageClientAuth, ended), alice, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			answered, failed := g.answered.Load(), g.failedHandshakes()
			code, got, err := g.ask(t, g.caller(t, test.certificate), test.header)
			switch {
			case test.reason == "":
				// What the client sees depends on how far it is when the server hangs up.
				if err == nil || g.answered.Load() != answered {
					t.Errorf("answered: %d %+v", code, got)
				}
				eventually(t, "a failed handshake", func() bool { return g.failedHandshakes() > failed })
			case code != http.StatusUnauthorized || got.User != "" || !strings.Contains(got.Error, test.reason):
				t.Errorf("%d %+v %v, want 401 and %q", code, got, err, test.reason)
			}
		})
	}
}

func TestEveryNameOfACAOfItsOwn(t *testing.T) {
	proxies, clients := newAuthority("proxies", nil), newAuthority("clients", nil)
	g := start(t, configMap(proxies, clients, `[]`))
	if code, got, err := g.ask(t, g.caller(t, proxies.issue("any", x509.ExtKeyUsageClientAuth)), alice); err != nil || got.User != "alice" {
		t.Error(code, got, err)
	}
	if _, got, err := g.ask(t, g.caller(t, clients.issue("any", x509.ExtKeyUsageClientAuth)), alice); err == nil {
		t.Errorf("a user's certificate is believed: %+v", got)
	}
}

func TestHeaderNamesAreThoseOfTheCluster(t *testing.T) {
	proxies := newAuthority("proxies", nil)
	config := configMap(proxies, nil, `["p"]`)
	config.Data["requestheader-username-headers"] = `["X-First","x-second"]`
	config.Data["requestheader-group-headers"] = `["X-Groups"]`
	config.Data["requestheader-extra-headers-prefix"] = `["X-More-"]`
	delete(config.Data, "requestheader-uid-headers")
	g := start(t, config)
	client := g.caller(t, proxies.issue("p", x509.ExtKeyUsageClientAuth))
	_, got, err := g.ask(t, client, http.Header{
		"X-Second": {"bob"}, "X-Groups": {"g"}, "X-More-K": {"v"},
		"X-Remote-User": {"admin"}, "X-Remote-Uid": {"1"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Extra-K": {"w"},
	})
	if err != nil || got.User != "bob" || got.UID != "" || !reflect.DeepEqual(got.Groups, []string{"g"}) ||
		!reflect.DeepEqual(got.Extra, map[string][]string{"k": {"v"}}) {
		t.Errorf("%+v %v", got, err)
	}
	if code, got, err := g.ask(t, client, alice); err != nil || code != http.StatusUnauthorized {
		t.Errorf("headers of another cluster are believed: %+v %v", got, err)
	}
}

func TestNoTrustInTheSystem(t *testing.T) {
	a, err := trust.NewAuthenticator(trust.AuthenticatorConfig{Client: fake.NewClientset(), Log: new(lines).logger()})
	if err != nil {
		t.Fatal(err)
	}
	config := a.TLSConfig(nil)
	current, err := config.GetConfigForClient(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*tls.Config{config, current} {
		if c.ClientCAs == nil || !c.ClientCAs.Equal(x509.NewCertPool()) ||
			c.ClientAuth != tls.VerifyClientCertIfGiven || !c.SessionTicketsDisabled {
			t.Errorf("before Start clients are verified by %v, %v", c.ClientCAs, c.ClientAuth)
		}
	}
	if _, err := a.Authenticate(new(http.Request)); !errors.Is(err, trust.ErrUnavailable) {
		t.Errorf("before Start: %v", err)
	}
}

func TestMissingFields(t *testing.T) {
	for want, got := range map[string]func() error{
		"AuthenticatorConfig.Client": func() error { _, err := trust.NewAuthenticator(trust.AuthenticatorConfig{}); return err },
		"AuthenticatorConfig.Log": func() error {
			_, err := trust.NewAuthenticator(trust.AuthenticatorConfig{Client: fake.NewClientset()})
			return err
		},
		"AuthorizerConfig.Reviews": func() error { _, err := trust.NewAuthorizer(trust.AuthorizerConfig{}); return err },
		"NamespacesConfig.Client":  func() error { _, err := trust.NewNamespaces(trust.NamespacesConfig{}); return err },
		"NamespacesConfig.Log":     func() error { _, err := trust.NewNamespaces(trust.NamespacesConfig{Client: newMetadata()}); return err },
	} {
		if err := got(); err == nil || !strings.Contains(err.Error(), want+" is missing") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
