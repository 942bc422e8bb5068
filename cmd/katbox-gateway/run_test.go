package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/lib/ops"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

const patience = 2 * time.Minute

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// authority issues certificates as the cluster does for its API server.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.key = a.newKey()
	a.cert = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "front-proxy-ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, a.key, nil)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey, parent *x509.Certificate) *x509.Certificate {
	a.t.Helper()
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// client is a certificate that the API server shows.
func (a *authority) client(name string) tls.Certificate {
	key := a.newKey()
	cert := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, key, a.cert)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// gateway is a gateway that runs against fakes of the API server's clients.
type gateway struct {
	t       *testing.T
	cluster clients
	counted *gatewaymetrics.Metrics
	ca      *authority
	stop    context.CancelFunc
	// ended is closed when it has ended, with err.
	ended chan struct{}
	err   error

	mu sync.Mutex
	// addresses are those that the log names, by flag; that of --http-endpoint is under "".
	addresses map[string]string
}

// pem is its certificate.
func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// fakeCluster has the objects that the manifests have, and what the API server says of its certificates. Objects of the core and of
// metadata come in addition.
func fakeCluster(ca string, more ...runtime.Object) (clients, *fake.Clientset) {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	typed := []runtime.Object{
		&corev1.ConfigMap{ObjectMeta: meta("katbox", "katbox-gateway-ca")},
		&corev1.ConfigMap{ObjectMeta: meta("kube-system", "extension-apiserver-authentication"), Data: map[string]string{
			"requestheader-client-ca-file": ca, "requestheader-allowed-names": `["front-proxy-client"]`,
			"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`, "client-ca-file": "",
		}},
	}
	secret := runtime.Object(&corev1.Secret{ObjectMeta: meta("katbox", "katbox-gateway")})
	var partial []runtime.Object
	for _, object := range more {
		switch object.(type) {
		case *metav1.PartialObjectMetadata:
			partial = append(partial, object)
		case *corev1.Secret:
			secret = object
		default:
			typed = append(typed, object)
		}
	}
	core := fake.NewClientset(append(typed, secret)...)
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return clients{core: core, metadata: metadatafake.NewSimpleMetadataClient(scheme, partial...),
		dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{
				apiServices: "APIServiceList", {Group: "pools.katbox.io", Version: "v1alpha1", Resource: "poolvolumes"}: "PoolVolumeList",
			},
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": apiService},
				"spec": map[string]any{},
			}})}, core
}

// newGateway starts one among the objects that the manifests have. Before that, change may change its
// options and the client, if it is not nil.
func newGateway(t *testing.T, change func(*options, *fake.Clientset)) *gateway {
	t.Helper()
	g := &gateway{t: t, ca: newAuthority(t), counted: gatewaymetrics.New(version, revision), ended: make(chan struct{})}
	g.addresses = map[string]string{}
	var core *fake.Clientset
	g.cluster, core = fakeCluster(g.ca.pem())
	o, err := parse([]string{"--namespace=katbox", "--api-endpoint=127.0.0.1:0", "--nodes-endpoint=127.0.0.1:0", "--http-endpoint=127.0.0.1:0",
		"--shutdown-delay=0s"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&o, core)
	}
	ctx, stop := context.WithCancel(t.Context())
	g.stop = stop
	go func() {
		defer close(g.ended)
		g.err = live(ctx, o, g.cluster, g.counted, g.log())
	}()
	t.Cleanup(func() {
		stop()
		_ = g.wait() // the test has looked at it, or has failed
	})
	return g
}

// wait waits for the end, and returns how it ended.
func (g *gateway) wait() error {
	g.t.Helper()
	select {
	case <-g.ended:
		return g.err
	case <-time.After(patience):
		g.t.Error("it did not stop")
		return nil
	}
}

// log remembers the addresses.
func (g *gateway) log() logr.Logger {
	return funcr.New(func(_, line string) {
		_, rest, ok := strings.Cut(line, `"address"="`)
		if !ok || !strings.Contains(line, `"msg"="listening"`) && !strings.Contains(line, `"msg"="serving health`) {
			return
		}
		address, _, _ := strings.Cut(rest, `"`)
		_, rest, _ = strings.Cut(line, `"for"="`)
		flag, _, _ := strings.Cut(rest, `"`)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.addresses[flag] = address
	}, funcr.Options{})
}

func (g *gateway) address(flag string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addresses[flag]
}

func (g *gateway) eventually(what string, check func() error) {
	g.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("%s: %v", what, err)
		}
	}
}

// probe asks as the kubelet does.
func (g *gateway) probe(path string, code int, part string) error {
	answer, err := http.Get("http://" + g.address("") + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != code || !strings.Contains(string(body), part)) {
		err = fmt.Errorf("%s: %s %q, want %d with %q", path, answer.Status, body, code, part)
	}
	return err
}

// published is the CA as the API server knows it.
func (g *gateway) published() *x509.CertPool {
	g.t.Helper()
	object, err := g.cluster.dynamic.Resource(apiServices).Get(g.t.Context(), apiService, metav1.GetOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	encoded, _, _ := unstructured.NestedString(object.Object, "spec", "caBundle")
	bundle, err := base64.StdEncoding.DecodeString(encoded)
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(bundle) {
		g.t.Fatalf("the caBundle is %q", encoded)
	}
	return pool
}

// ask asks as the API server does, and returns the code of the answer.
func (g *gateway) ask(flag, host, path string, certs ...tls.Certificate) (int, error) {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: g.published(), ServerName: host, Certificates: certs}, ForceAttemptHTTP2: true,
	}
	defer transport.CloseIdleConnections()
	// It is ready a moment before its log says on which address.
	g.eventually("an address of "+flag, func() error {
		if g.address(flag) == "" {
			return errors.New("none is logged")
		}
		return nil
	})
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, "https://"+g.address(flag)+path, nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("X-Remote-User", "alice")
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// TestLife: a gateway makes its certificate, publishes its CA, serves both ports under the names of
// their Services, believes the API server alone, and stops in order.
func TestLife(t *testing.T) {
	g := newGateway(t, nil)
	g.eventually("ready", func() error { return g.probe("/readyz", http.StatusOK, "ok") })
	if err := g.probe("/healthz", http.StatusOK, "ok"); err != nil {
		t.Error(err)
	}
	const discovery = "/apis/katbox.io/v1alpha1"
	proxy, other := []tls.Certificate{g.ca.client("front-proxy-client")}, []tls.Certificate{g.ca.client("somebody")}
	for name, tt := range map[string]struct {
		flag, host, path string
		certs            []tls.Certificate
		want             int
	}{
		"API server":            {"api-endpoint", "katbox-gateway.katbox.svc", discovery, proxy, 200},
		"no certificate":        {"api-endpoint", "katbox-gateway.katbox.svc", discovery, nil, 401},
		"another certificate":   {"api-endpoint", "katbox-gateway.katbox.svc", discovery, other, 401},
		"no node":               {"nodes-endpoint", "katbox-gateway-nodes.katbox.svc", "/v1/connect", nil, 426},
		"probe by the API port": {"api-endpoint", "katbox-gateway.katbox.svc", "/readyz", nil, 200},
	} {
		if code, err := g.ask(tt.flag, tt.host, tt.path, tt.certs...); err != nil || code != tt.want {
			t.Errorf("%s: %d, %v, want %d", name, code, err, tt.want)
		}
	}
	values := metricstest.Of(t, g.counted)
	if end := values[`katbox_gateway_certificate_end_timestamp_seconds{certificate="serving"}`]; end < float64(time.Now().Unix()) {
		t.Errorf("the certificate ends at %f", end)
	}
	ca, err := g.cluster.core.CoreV1().ConfigMaps("katbox").Get(t.Context(), "katbox-gateway-ca", metav1.GetOptions{})
	if err != nil || !strings.Contains(ca.Data["ca.crt"], "CERTIFICATE") {
		t.Errorf("the daemons' CA is %q, %v", ca.Data, err)
	}

	g.stop()
	if err := g.wait(); err != nil {
		t.Error(err)
	}
}

// TestLeave: a gateway that stops is not ready, and answers on until the API server has seen that.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status, err := ops.Start(ops.Config{Log: logr.Discard()})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		(&instance{o: options{shutdownDelay: 3 * time.Second}, status: status}).leave()
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("it waited for %s", waited)
		}
	})
}

// TestStopBeforeItHasStarted: an API server that does not answer holds up no stop.
func TestStopBeforeItHasStarted(t *testing.T) {
	g := newGateway(t, func(o *options, core *fake.Clientset) {
		o.certSecret = "none.of.that.name"
		core.PrependReactor("create", "secrets", refuse)
	})
	g.eventually("probes are answered", func() error { return g.probe("/readyz", http.StatusServiceUnavailable, "starting") })
	g.stop()
	if err := g.wait(); err != nil {
		t.Errorf("%v, want that a signal is no failure", err)
	}
}

// TestAddressInUse: the error names the flag.
func TestAddressInUse(t *testing.T) {
	first := newGateway(t, nil)
	first.eventually("it says where it listens", func() error { // which may be after it is ready
		if first.address("nodes-endpoint") == "" {
			return errRefused
		}
		return nil
	})
	second := newGateway(t, func(o *options, _ *fake.Clientset) { o.nodesEndpoint = first.address("nodes-endpoint") })
	if err := second.wait(); err == nil || !strings.Contains(err.Error(), "--nodes-endpoint") {
		t.Errorf("%v, want an error of --nodes-endpoint", err)
	}
}

var errRefused = errors.New("refused by the test")
