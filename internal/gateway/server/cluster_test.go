package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/node/handlers"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/gateway/trust"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/scratch"
)

const (
	base = "/apis/katbox.io/v1alpha1"
	list = base + "/namespaces/ci/retainedvolumes"
)

// cluster is a gateway with nodes. Authentication and access are made up; the fleet, the nodes' API
// and their files are real.
type cluster struct {
	t      *testing.T
	server *Server
	http   *httptest.Server

	mu sync.Mutex
	// allowed says who may do what; noReviews is why nobody can say.
	allowed   func(user string, what trust.Attributes) bool
	noReviews error
	reviews   []string
	tenancies map[string]volume.Tenancy
	owners    map[string]api.Owner
	nodes     map[string]*testNode
	missing   []fleet.Missing
	lines     []map[string]any
	notReady  error
}

// testNode is a node of a cluster.
type testNode struct {
	c       *cluster
	name    string
	client  *api.Client
	volumes *nodeVolumes
	// answers, if it is not nil, answers instead of the node, if it returns true.
	answers func(http.ResponseWriter, *http.Request) bool
	// gone says that the node is connected for lists, and lost when it is asked for more.
	gone bool
}

func newCluster(t *testing.T, adjust ...func(*Server)) *cluster {
	t.Helper()
	c := &cluster{
		t: t, nodes: map[string]*testNode{}, tenancies: map[string]volume.Tenancy{}, owners: map[string]api.Owner{},
		allowed: func(who string, what trust.Attributes) bool {
			return who == "admin" || what.Namespace == "ci" && who == "alice"
		},
	}
	c.tenancies["ci"] = volume.Tenancy{UID: "ci-2", Since: time.Unix(1500, 0)}
	f, err := fleet.New(fleet.Config{Nodes: c, Namespaces: c, Owners: ownersOf{c}, Key: make([]byte, fleet.KeySize), Namespace: "katbox",
		Log: logr.Discard()})
	must(t, err)
	c.server, err = New(Config{
		Authenticator: c, Authorizer: c, Fleet: f, Client: c.client, Namespace: "katbox",
		Ready:   func() error { c.mu.Lock(); defer c.mu.Unlock(); return c.notReady },
		Metrics: gatewaymetrics.New("v1", ""),
		Log: funcr.NewJSON(func(line string) {
			var fields map[string]any
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				t.Errorf("log line %s: %v", line, err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lines = append(c.lines, fields)
		}, funcr.Options{}),
	})
	must(t, err)
	for _, change := range adjust {
		change(c.server)
	}
	c.http = httptest.NewUnstartedServer(c.server)
	c.http.EnableHTTP2 = true
	c.http.Config = c.server.HTTP()
	c.http.Listener = Bounded(c.http.Listener)
	c.http.StartTLS()
	t.Cleanup(c.http.Close)
	return c
}

// add adds a node, with some volumes of namespace ci.
func (c *cluster) add(name string) *testNode {
	c.t.Helper()
	dir, err := scratch.Open(filepath.Join(c.t.TempDir(), "work"))
	must(c.t, err)
	n := &testNode{c: c, name: name, volumes: &nodeVolumes{dir: dir, all: map[volume.ID]volume.Description{},
		lost: map[volume.ID]context.CancelCauseFunc{}}}
	h, err := handlers.NewHandler(handlers.Config{
		Volumes: n.volumes, Node: name, Gateway: true, Space: func() (volume.Space, error) { return volume.Space{}, nil },
		LowPriority: func() func() { return func() {} }, Log: logr.Discard(), Metrics: metrics.New("v1", ""),
		Report: func(context.Context, io.Writer) error { return nil },
	})
	must(c.t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.answers == nil || !n.answers(w, r) {
			h.ServeHTTP(w, r)
		}
	}))
	n.client = api.NewClient("node "+name, &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", server.Listener.Addr().String())
		},
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name] = n
	c.t.Cleanup(func() {
		n.client.Close()
		server.CloseClientConnections()
		server.Close()
		must(c.t, dir.Close())
	})
	return n
}

// Authenticate believes a header, as the real one does after it has seen a certificate.
func (c *cluster) Authenticate(r *http.Request) (user.Info, error) {
	switch name := r.Header.Get("X-Remote-User"); name {
	case "":
		return nil, &trust.UnauthenticatedError{Reason: "there is no client certificate"}
	case "later":
		return nil, trust.ErrUnavailable
	default:
		return &user.DefaultInfo{Name: name}, nil
	}
}

func (c *cluster) Allowed(_ context.Context, who user.Info, what trust.Attributes) (bool, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reviews = append(c.reviews, fmt.Sprintf("%s %s %q %q %q", who.GetName(), what.Verb, what.Namespace, what.Name, what.Subresource))
	return c.allowed(who.GetName(), what), "", c.noReviews
}

func (c *cluster) client(node string) (*api.Client, bool) {
	n := c.node(node)
	return n.client, !n.gone
}

func (c *cluster) node(name string) *testNode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[name]
}

// Look returns all nodes: what they hold is not what is tested here.
func (c *cluster) Look(_ context.Context, namespace string) (l fleet.Look) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.Missing, l.Count = c.missing, len(c.nodes)+len(c.missing)
	for _, n := range c.nodes {
		l.Held = append(l.Held, fleet.Held{Node: n, Holdings: []api.Holding{{Namespace: namespace, Volumes: 1}}})
	}
	return l
}

func (c *cluster) LookAll(ctx context.Context) fleet.Look { return c.Look(ctx, "ci") }

func (c *cluster) ByHash(_ context.Context, hash uint32) (states []fleet.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range c.nodes {
		if resource.NodeHash(name) == hash {
			states = append(states, fleet.State{Node: n})
		}
	}
	for _, m := range c.missing {
		if resource.NodeHash(m.Node) == hash {
			states = append(states, fleet.State{Missing: m})
		}
	}
	return states
}

func (c *cluster) Tenancy(namespace string) (volume.Tenancy, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.tenancies[namespace]
	return t, ok
}

func (c *cluster) Lookup(_ context.Context, namespace string) (volume.Tenancy, bool, error) {
	t, ok := c.Tenancy(namespace)
	return t, ok, nil
}

type ownersOf struct{ c *cluster }

func (o ownersOf) Verdict(podUID, _ string) (api.Owner, bool) {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	owner, ok := o.c.owners[podUID]
	return owner, ok
}

func (n *testNode) Node() string { return n.name }

func (n *testNode) List(ctx context.Context, by fleet.Reader, q api.Query) (api.VolumeList, error) {
	return n.client.OnBehalf(by.User, by.AuditID).List(ctx, q)
}

func (n *testNode) Gone(ctx context.Context, by fleet.Reader, q api.GoneQuery) (api.GoneList, error) {
	return n.client.OnBehalf(by.User, by.AuditID).Gone(ctx, q)
}

func (n *testNode) Grep(ctx context.Context, by fleet.Reader, q api.GrepQuery) (*api.GrepStream[api.Volume], error) {
	return n.client.OnBehalf(by.User, by.AuditID).Grep(ctx, q)
}

// do sends a request of a user.
func (c *cluster) do(who, method, path string, header http.Header, body string) *http.Response {
	c.t.Helper()
	answer, err := c.try(who, method, path, header, body)
	must(c.t, err)
	c.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// try is do, but returns an error if there is no answer. The caller closes the body.
func (c *cluster) try(who, method, path string, header http.Header, body string) (*http.Response, error) {
	c.t.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	c.t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, method, c.http.URL+path, from)
	must(c.t, err)
	maps.Copy(request.Header, header)
	if who != "" {
		request.Header.Set("X-Remote-User", who)
	}
	client := *c.http.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return errors.New("the gateway redirects") }
	return client.Do(request)
}

// get sends a GET and returns the whole answer.
func (c *cluster) get(who, path string) (*http.Response, string) {
	c.t.Helper()
	return c.whole(c.do(who, http.MethodGet, path, nil, ""))
}

func (c *cluster) whole(answer *http.Response) (*http.Response, string) {
	c.t.Helper()
	text, err := io.ReadAll(answer.Body)
	must(c.t, err)
	return answer, string(text)
}

// list gets a list, and returns the names in it.
func (c *cluster) list(who, path string) (list resource.RetainedVolumeList, names []string) {
	c.t.Helper()
	answer, text := c.get(who, path)
	if answer.StatusCode != http.StatusOK {
		c.t.Fatalf("list %s of %s: %d %s", path, who, answer.StatusCode, text)
	}
	must(c.t, json.Unmarshal([]byte(text), &list))
	for _, v := range list.Items {
		names = append(names, v.Name)
	}
	return list, names
}

// wantStatus wants an answer that is an error.
func (c *cluster) wantStatus(what string, answer *http.Response, code int, reason string) metav1.Status {
	c.t.Helper()
	_, text := c.whole(answer)
	var status metav1.Status
	if err := json.Unmarshal([]byte(text), &status); err != nil || answer.StatusCode != code || int(status.Code) != code ||
		string(status.Reason) != reason || status.Kind != "Status" || status.Message == "" {
		c.t.Errorf("%s: %d %s (%v), want %d %s", what, answer.StatusCode, text, err, code, reason)
	}
	wantSafe(c.t, what, answer)
	return status
}

// wantSafe wants the headers that every answer has.
func wantSafe(t *testing.T, what string, answer *http.Response) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'",
		"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s: header %s is %q", what, name, got)
		}
	}
	if answer.StatusCode >= 300 && answer.StatusCode < 400 {
		t.Errorf("%s: the status is %d", what, answer.StatusCode)
	}
}

// wantLine waits for the log lines of volumes, as many as there should be, and returns the last.
func (c *cluster) wantLine(lines int) map[string]any {
	c.t.Helper()
	var last map[string]any
	eventually(c.t, fmt.Sprintf("%d log lines", lines), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.lines) > lines {
			c.t.Fatalf("%d log lines, want %d: %v", len(c.lines), lines, c.lines)
		}
		if len(c.lines) == lines {
			last = c.lines[lines-1]
		}
		return last != nil
	})
	return last
}

// eventually waits for something that has to come. It fails after two minutes.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o640))
}
