package replicas_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/link/replicas"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	nodemetrics "github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/uplink"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

const (
	// name is that of the gateway's certificate.
	name     = "localhost"
	patience = 2 * time.Minute
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// cluster is what the API server knows: the nodes, each of whose tokens is its name.
type cluster []string

func podOf(node string) hub.Pod {
	return hub.Pod{Name: "katbox-" + node, UID: "uid-" + node, Node: node}
}

func (c cluster) Review(_ context.Context, token string) (hub.Identity, error) {
	if !slices.Contains(c, token) {
		return hub.Identity{}, hub.ErrToken
	}
	pod := podOf(token)
	return hub.Identity{Namespace: "katbox", ServiceAccount: "katbox", Pod: pod.Name, PodUID: pod.UID, Node: token}, nil
}

func (c cluster) Pod(uid string) (hub.Pod, bool) {
	node := strings.TrimPrefix(uid, "uid-")
	return podOf(node), slices.Contains(c, node)
}

func (c cluster) Read(_ context.Context, pod string) (hub.Pod, error) {
	return podOf(strings.TrimPrefix(pod, "katbox-")), nil
}
func (c cluster) Expects(node string) bool { return slices.Contains(c, node) }
func (c cluster) Nodes() (map[string]time.Time, bool) {
	since := map[string]time.Time{}
	for _, node := range c {
		since[node] = time.Now()
	}
	return since, true
}
func (cluster) Ask(context.Context, string, []api.OwnerAsk) []api.OwnerAnswer { return nil }

// scene is a gateway of several replicas, and nodes that connect to it.
type scene struct {
	t        *testing.T
	ca       *uplinktest.Authority
	cert     tls.Certificate
	cluster  cluster
	replicas []*replica
}

// replica is one of a gateway.
type replica struct {
	*hub.Registry
	others *replicas.Replicas
	server *httptest.Server
	// tell stops that it looks for others.
	end context.CancelFunc
}

func (r *replica) address() netip.AddrPort {
	return netip.MustParseAddrPort(r.server.Listener.Addr().String())
}

// lose ends a replica as SIGKILL does: its connections break.
func (r *replica) lose() {
	r.end()
	r.server.Listener.Close()
	r.server.CloseClientConnections()
	r.Close()
}

func hash(node string) uint32 { return uint32(len(node)) }

// newScene starts so many replicas.
func newScene(t *testing.T, count int, nodes ...string) *scene {
	t.Helper()
	ca := uplinktest.NewAuthority(t)
	s := &scene{t: t, ca: ca, cert: ca.Leaf(t, name), cluster: nodes}
	var mu sync.Mutex
	var all []netip.AddrPort
	find := func(context.Context) ([]netip.AddrPort, error) {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all), nil
	}
	for range count {
		r := s.newReplica(find)
		mu.Lock()
		all = append(all, r.address())
		mu.Unlock()
	}
	for _, r := range s.replicas {
		r.others.Begin(t.Context())
	}
	return s
}

func (s *scene) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.ca.PEM)
	return pool
}

func (s *scene) newReplica(find func(context.Context) ([]netip.AddrPort, error)) *replica {
	s.t.Helper()
	r := &replica{end: func() {}}
	var err error
	r.others, err = replicas.New(replicas.Config{
		Find: find, Name: name, Roots: s.roots, Log: logr.Discard(),
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &s.cert, nil },
	})
	must(s.t, err)
	r.Registry, err = hub.New(hub.Config{
		Reviewer: s.cluster, Expected: s.cluster, Owners: s.cluster, Namespace: "katbox", ServiceAccount: "katbox", Hash: hash,
		Replicas: r.others,
	})
	must(s.t, err)
	r.others.Of(r.Registry)
	r.server = httptest.NewUnstartedServer(nil)
	r.server.Config = r.Server(&tls.Config{Certificates: []tls.Certificate{s.cert}})
	r.server.TLS, r.server.EnableHTTP2 = r.server.Config.TLSConfig, true
	r.server.StartTLS()
	s.replicas = append(s.replicas, r)
	s.t.Cleanup(func() {
		r.others.Stop()
		r.Close()
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

// retained is when the newest volume of each node was.
var retained = time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)

// volumes of a node: two that are retained in ci.
type volumes struct{}

func (volumes) Awake(context.Context) ([]volume.Description, error) { return nil, nil }
func (volumes) Holdings(context.Context) ([]volume.Holding, error) {
	return []volume.Holding{{Namespace: "ci", NamespaceUID: "u", Verdict: volume.Confirmed, Volumes: 2, Newest: retained}}, nil
}
func (volumes) Own(context.Context, volume.ID, volume.PodUID, volume.Owner) error {
	return volume.ErrNotFound
}

// connect connects a node to some of the replicas.
func (s *scene) connect(node string, handler http.HandlerFunc, to ...*replica) {
	s.t.Helper()
	s.connectWith(node, volumes{}, handler, to...)
}

// connectWith connects a node that holds something else.
func (s *scene) connectWith(node string, holds uplink.Volumes, handler http.HandlerFunc, to ...*replica) {
	s.t.Helper()
	dir := s.t.TempDir()
	ca, token := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	must(s.t, os.WriteFile(ca, s.ca.PEM, 0o600), os.WriteFile(token, []byte(node), 0o600))
	var targets []string
	for _, r := range to {
		targets = append(targets, net.JoinHostPort(name, fmt.Sprint(r.address().Port())))
	}
	u, err := uplink.Start(uplink.Config{
		Gateway: strings.Join(targets, ","), CAFile: ca, TokenFile: token, Node: node, Version: "v1", Volumes: holds,
		Metrics: nodemetrics.New("v1", ""), Handler: handler,
	})
	must(s.t, err)
	s.t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = u.Stop(ctx)
	})
	for _, r := range to {
		s.eventually(node+" is connected", func() bool {
			return slices.ContainsFunc(r.Each("ci"), func(h hub.Held) bool {
				return h.Conn.Node() == node && len(h.Holdings) > 0 && h.Holdings[0].Namespace == "ci"
			})
		})
	}
}

// takeEach calls f with each connection that comes, and closes it, until the listener is closed.
func takeEach(l net.Listener, f func(net.Conn)) {
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f(conn)
			conn.Close()
		}
	}()
}

func (s *scene) eventually(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("still not: %s", what)
		}
	}
}

// named answers a list with a volume that has the name of the node.
func named(node string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(api.VolumeList{Items: []api.Volume{{ID: "csi-" + node, Namespace: r.Header.Get(api.HeaderUser)}}})
	}
}

// list returns what all nodes of a look answer, by name; the missing ones have none.
func list(t *testing.T, f hub.Fleet) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, h := range f.Held {
		all, err := h.Conn.Client().OnBehalf("alice", "").List(t.Context(), api.Query{Namespace: "ci"})
		if err != nil || len(all.Items) != 1 || all.Items[0].Namespace != "alice" {
			t.Errorf("%s: %+v, %v", h.Conn.Node(), all, err)
			continue
		}
		if _, twice := got[h.Conn.Node()]; twice {
			t.Errorf("%s is there twice", h.Conn.Node())
		}
		got[h.Conn.Node()] = all.Items[0].ID
	}
	for _, m := range f.Missing {
		got[m.Node] = "missing"
	}
	return got
}

// TestEachReplicaHasAll: a replica lists and reaches the nodes that are connected to others alone, once each, and names those
// that are connected to none.
func TestEachReplicaHasAll(t *testing.T) {
	s := newScene(t, 3, "n1", "n22", "n333", "n4444")
	a, b, c := s.replicas[0], s.replicas[1], s.replicas[2]
	s.connect("n1", named("n1"), a, b)
	s.connect("n22", named("n22"), b, c)
	s.connect("n333", named("n333"), c)
	want := map[string]string{"n1": "csi-n1", "n22": "csi-n22", "n333": "csi-n333", "n4444": "missing"}
	for i, r := range s.replicas {
		f := r.Look(t.Context(), "ci")
		if got := list(t, f); !maps.Equal(got, want) || f.Count != 4 {
			t.Errorf("replica %d lists %v of %d, want %v", i, got, f.Count, want)
		}
		for _, h := range f.Held {
			if len(h.Holdings) != 1 || h.Holdings[0].Volumes != 2 || h.Holdings[0].NamespaceUID != "u" || h.Holdings[0].Verdict != "Confirmed" ||
				!h.Holdings[0].Newest.Equal(retained) {
				t.Errorf("replica %d: %s holds %+v", i, h.Conn.Node(), h.Holdings)
			}
		}
		if other := r.Look(t.Context(), "nobody"); len(other.Held) != 0 || len(other.Missing) != 1 {
			t.Errorf("replica %d says of a namespace without volumes: %+v", i, other)
		}
		if all := r.Look(t.Context(), hub.AnyNamespace); len(all.Held) != 3 || len(all.Missing) != 1 {
			t.Errorf("replica %d says of all nodes: %+v", i, all)
		}
		for node, id := range want {
			states := r.Named(t.Context(), hash(node))
			if len(states) != 1 || states[0].Node != node || (states[0].Conn == nil) != (id == "missing") {
				t.Errorf("replica %d finds %s as %+v", i, node, states)
			}
			conn, ok := r.Get(node)
			if ok != (id != "missing") {
				t.Errorf("replica %d has %s: %v", i, node, ok)
			}
			if ok {
				if v, err := conn.Client().List(t.Context(), api.Query{}); err != nil || v.Items[0].ID != id {
					t.Errorf("replica %d reads of %s: %+v, %v", i, node, v, err)
				}
			}
		}
		if counts := r.Counts(); counts.Expected != 4 || counts.Connected+counts.Elsewhere != 3 {
			t.Errorf("replica %d counts %+v", i, counts)
		}
		if !r.others.Forward() || r.others.Count() != 3 {
			t.Errorf("replica %d knows %d replicas, and forwards: %v", i, r.others.Count(), r.others.Forward())
		}
	}
}

// TestPassedOn: what a node answers comes as it is, errors and streams too, and what it is sent.
func TestPassedOn(t *testing.T) {
	s := newScene(t, 2, "n1")
	got := make(chan string, 10)
	release := make(chan struct{})
	s.connect("n1", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- fmt.Sprintf("%s %s %s user=%s range=%s node=%q", r.Method, r.URL.RequestURI(), body, r.Header.Get(api.HeaderUser),
			r.Header.Get("Range"), r.Header.Get(api.HeaderNode))
		w.Header().Set("Katbox-Relayed", "away") // a node that lies
		switch {
		case r.URL.Query().Has("refused"):
			api.WriteError(w, api.NewError(api.Conflict, "it is published"))
		case r.URL.Query().Has("broken"):
			_, _ = io.WriteString(w, "a part")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case r.URL.Query().Has("slow"):
			_, _ = io.WriteString(w, "first ")
			_ = http.NewResponseController(w).Flush()
			<-release
			_, _ = io.WriteString(w, "last")
		default:
			w.Header().Set("ETag", `"x"`)
			_, _ = io.WriteString(w, `{"id":"csi-1"}`)
		}
	}, s.replicas[0])
	s.replicas[1].Look(t.Context(), "ci")
	conn, ok := s.replicas[1].Get("n1")
	if !ok {
		t.Fatal("the other replica has no way to n1")
	}
	node := conn.Client().OnBehalf("alice", "audit-1")
	wantGot := func(want string) {
		t.Helper()
		if text := <-got; text != want {
			t.Errorf("the node got\n%s, want\n%s", text, want)
		}
	}
	if v, err := node.Pin(t.Context(), "csi-1", time.Unix(0, 0).UTC(), "why"); err != nil || v.ID != "csi-1" {
		t.Errorf("a pin: %+v, %v", v, err)
	}
	if text := <-got; !strings.HasPrefix(text, "PATCH /v1/volumes/csi-1 {") || !strings.Contains(text, "why") ||
		!strings.HasSuffix(text, `user=alice range= node=""`) {
		t.Errorf("the node got %s", text)
	}
	answer, err := node.Send(t.Context(), http.MethodGet, api.BytesPath("csi-1"), nil, http.Header{"Range": {"bytes=1-2"}})
	must(t, err)
	answer.Body.Close()
	if answer.Header.Get("ETag") != `"x"` || answer.Header.Get("Katbox-Relayed") != "" {
		t.Errorf("the header is %v", answer.Header)
	}
	wantGot(`GET /v1/volumes/csi-1/bytes  user=alice range=bytes=1-2 node=""`)
	said := (*api.Error)(nil)
	answer, err = node.Send(t.Context(), http.MethodGet, api.BytesPath("csi-1"), map[string][]string{"refused": {""}}, nil)
	must(t, err)
	if err := node.ReadError(answer); !errors.As(err, &said) || said.Reason != api.Conflict || said.Message != "it is published" {
		t.Errorf("the refusal is %v", err)
	}
	<-got
	answer, err = node.Send(t.Context(), http.MethodGet, api.BytesPath("csi-1"), map[string][]string{"broken": {""}}, nil)
	must(t, err)
	if text, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("a stream that broke ends well: %q", text)
	}
	<-got
	answer, err = node.Send(t.Context(), http.MethodGet, api.BytesPath("csi-1"), map[string][]string{"slow": {""}}, nil)
	must(t, err)
	first := make([]byte, 6)
	if _, err := io.ReadFull(answer.Body, first); err != nil || string(first) != "first " {
		t.Errorf("%q, %v: what a node has sent waits for what it has not", first, err)
	}
	close(release)
	if rest, err := io.ReadAll(answer.Body); err != nil || string(rest) != "last" {
		t.Errorf("%q, %v", rest, err)
	}
}
