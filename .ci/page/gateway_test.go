package page

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/server"
	"github.com/katbox/katbox/internal/gateway/trust"
	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// namespaceUID is the UID of each namespace: volumes are those of the namespaces as they are now.
func namespaceUID(namespace string) string { return "uid-of-" + namespace }

// noLog goes nowhere. The zero Logger would be none at all.
var noLog = funcr.New(func(string, string) {}, funcr.Options{})

// gateway is what katbox-gateway runs, with an API server made up for what it asks.
type gateway struct {
	// address is where the API server reaches it, nodesAddress is for nodes.
	address, nodesAddress string
	// ca has signed its certificate.
	ca       *authority
	registry *hub.Registry
}

// newGateway starts a gateway that believes certificates of proxies. It waits for nodes with these
// names.
func newGateway(t testing.TB, proxies *authority, expected []string) *gateway {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	g := &gateway{ca: newAuthority(t, "gateway")}
	objects := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"},
		Data: map[string]string{
			"requestheader-client-ca-file":       string(proxies.pem()),
			"requestheader-allowed-names":        `["front-proxy-client"]`,
			"requestheader-username-headers":     `["X-Remote-User"]`,
			"requestheader-group-headers":        `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		},
	})
	objects.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		review.Status.Allowed = may(review.Spec.User, review.Spec.ResourceAttributes)
		return true, review, nil
	})
	trusted, err := trust.NewAuthenticator(trust.AuthenticatorConfig{Client: objects, Log: noLog})
	must(t, err)
	must(t, trusted.Start(ctx))
	scheme := runtime.NewScheme()
	must(t, metav1.AddMetaToScheme(scheme))
	var known []runtime.Object
	for _, name := range []string{"ci", "other", "empty"} {
		known = append(known, &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(namespaceUID(name)), CreationTimestamp: metav1.NewTime(time.Unix(1000, 0))},
		})
	}
	namespaces, err := trust.NewNamespaces(trust.NamespacesConfig{
		Client: metadatafake.NewSimpleMetadataClient(scheme, known...), Log: noLog,
	})
	must(t, err)
	namespaces.Start(ctx)
	pods := daemons{expected, time.Now()}
	g.registry, err = hub.New(hub.Config{
		Reviewer: pods, Expected: pods, Owners: pods, Namespace: "katbox", ServiceAccount: "katbox", Hash: resource.NodeHash,
	})
	must(t, err)
	volumes, err := fleet.New(fleet.Config{
		Nodes: fleetNodes{g.registry}, Namespaces: namespaces, Owners: pods, Key: bytes.Repeat([]byte("k"), fleet.KeySize),
		Namespace: "katbox", Log: noLog,
	})
	must(t, err)
	rights, err := trust.NewAuthorizer(trust.AuthorizerConfig{Reviews: objects.AuthorizationV1().SubjectAccessReviews()})
	must(t, err)
	answers, err := server.New(server.Config{
		Authenticator: trusted, Authorizer: rights, Fleet: volumes, Namespace: "katbox", Log: noLog,
		Ready: func() error { return nil },
		Client: func(node string) (*api.Client, bool) {
			conn, ok := g.registry.Get(node)
			if !ok {
				return nil, false
			}
			return conn.Client(), true
		},
	})
	must(t, err)

	certificate := g.ca.issue(t, "katbox-gateway", x509.ExtKeyUsageServerAuth)
	forServer := answers.HTTP()
	forServer.TLSConfig = trusted.TLSConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil })
	forNodes := g.registry.Server(&tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	var stops []func()
	g.address, stops = serve(t, forServer, stops)
	g.nodesAddress, stops = serve(t, forNodes, stops)
	t.Cleanup(func() {
		answers.Stop()
		g.registry.Close()
		for _, stop := range stops {
			stop()
		}
		end()
		trusted.Wait()
		namespaces.Wait()
	})
	return g
}

// serve serves on a port, and returns its address.
func serve(t testing.TB, s *http.Server, stops []func()) (string, []func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- s.ServeTLS(l, "", "") }()
	return l.Addr().String(), append(stops, func() {
		s.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// daemons are the nodes' pods as the API server knows them: the token of one is its node's name.
type daemons struct {
	nodes []string
	since time.Time
}

func (daemons) Review(_ context.Context, token string) (hub.Identity, error) {
	return hub.Identity{Namespace: "katbox", ServiceAccount: "katbox", Pod: "katbox-" + token, PodUID: "pod-" + token, Node: token}, nil
}

func (daemons) Pod(uid string) (hub.Pod, bool) {
	node := uid[len("pod-"):]
	return hub.Pod{Name: "katbox-" + node, UID: uid, Node: node}, true
}

func (daemons) Read(_ context.Context, name string) (hub.Pod, error) {
	node := name[len("katbox-"):]
	return hub.Pod{Name: name, UID: "pod-" + node, Node: node}, nil
}

func (d daemons) Expects(node string) bool { return slices.Contains(d.nodes, node) }

func (d daemons) Nodes() (map[string]time.Time, bool) {
	since := map[string]time.Time{}
	for _, node := range d.nodes {
		since[node] = d.since
	}
	return since, true
}

// Ask and Verdict know nothing: what the nodes' records say counts.
func (daemons) Ask(context.Context, string, []api.OwnerAsk) []api.OwnerAnswer { return nil }
func (daemons) Verdict(string, string) (owner api.Owner, known bool)          { return owner, false }

// fleetNodes are the nodes of the registry in the words of the fleet.
type fleetNodes struct{ *hub.Registry }

func (f fleetNodes) Look(ctx context.Context, namespace string) fleet.Look {
	return lookOf(f.Registry.Look(ctx, namespace))
}

func (f fleetNodes) LookAll(ctx context.Context) fleet.Look {
	return lookOf(f.Registry.Look(ctx, hub.AnyNamespace))
}

func lookOf(all hub.Fleet) fleet.Look {
	l := fleet.Look{Held: heldOf(all.Held), Count: all.Count}
	for _, m := range all.Missing {
		l.Missing = append(l.Missing, fleet.Missing(m))
	}
	return l
}

func heldOf(found []hub.Held) (held []fleet.Held) {
	for _, h := range found {
		held = append(held, fleet.Held{Node: fleetNode{h.Conn}, Holdings: h.Holdings, Skip: h.Skip})
	}
	return held
}

func (f fleetNodes) ByHash(ctx context.Context, hash uint32) (states []fleet.State) {
	for _, s := range f.Named(ctx, hash) {
		state := fleet.State{Missing: fleet.Missing{Node: s.Node, Since: s.Since, Reason: s.Reason}}
		if s.Conn != nil {
			state.Node = fleetNode{s.Conn}
		}
		states = append(states, state)
	}
	return states
}

// fleetNode gets as much time for an answer as a busy machine needs: what the page shows of nodes that give none within
// the gateway's two seconds is not up to the machine's load.
type fleetNode struct{ hub.Conn }

func (n fleetNode) List(ctx context.Context, by fleet.Reader, q api.Query) (api.VolumeList, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return n.Client().OnBehalf(by.User, by.AuditID).List(ctx, q)
}

func (n fleetNode) Grep(ctx context.Context, by fleet.Reader, q api.GrepQuery) (*api.GrepStream[api.Volume], error) {
	return n.Client().OnBehalf(by.User, by.AuditID).Grep(ctx, q)
}

func (n fleetNode) Gone(ctx context.Context, by fleet.Reader, q api.GoneQuery) (api.GoneList, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return n.Client().OnBehalf(by.User, by.AuditID).Gone(ctx, q)
}
