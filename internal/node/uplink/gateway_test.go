package uplink

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// patience is far longer than anything should take.
const patience = 2 * time.Minute

// gatewayName is the name that the certificates are for.
const gatewayName = "gateway.test"

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// gateway is a stand-in for a gateway: a listener with real TLS.
type gateway struct {
	t        testing.TB
	listener net.Listener
	// behave is called with each connection that was accepted, and owns it.
	behave func(net.Conn)

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	count int
	tasks sync.WaitGroup
}

// startGateway listens on an address and hands each connection to behave.
func startGateway(t testing.TB, address string, behave func(net.Conn)) *gateway {
	t.Helper()
	l, err := net.Listen("tcp", address)
	must(t, err)
	return serveGateway(t, l, behave)
}

func serveGateway(t testing.TB, l net.Listener, behave func(net.Conn)) *gateway {
	g := &gateway{t: t, listener: l, behave: behave, conns: map[net.Conn]struct{}{}}
	g.tasks.Go(g.accept)
	t.Cleanup(g.stop)
	return g
}

func (g *gateway) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		g.count++
		g.conns[conn] = struct{}{}
		g.mu.Unlock()
		g.tasks.Go(func() { g.behave(conn) })
	}
}

// accepted returns how many connections there were.
func (g *gateway) accepted() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

// cut closes all connections.
func (g *gateway) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.conns {
		conn.Close()
		delete(g.conns, conn)
	}
}

func (g *gateway) stop() {
	g.listener.Close()
	g.cut()
	g.tasks.Wait()
}

func (g *gateway) port() string {
	_, port, _ := net.SplitHostPort(g.listener.Addr().String())
	return port
}

func (g *gateway) address() netip.Addr {
	return netip.MustParseAddrPort(g.listener.Addr().String()).Addr()
}

// node is a node that has connected.
type node struct {
	*uplinktest.Node
	// hush ends the summary.
	hush func()
	// lines are those of its summary.
	lines chan api.Summary
}

// take takes a node; it returns nil if that has left.
func take(t testing.TB, conn net.Conn, cert tls.Certificate, replica string) *node {
	n, err := uplinktest.TakeAs(t.Context(), conn, cert, replica)
	if err != nil {
		return nil
	}
	return &node{Node: n, lines: make(chan api.Summary, 1000)}
}

// good is a gateway that takes each node and reads its summary.
func good(t testing.TB, cert tls.Certificate) (behave func(net.Conn), nodes chan *node) {
	return goodAfter(t, cert, func(*node) {})
}

// goodAs is good for a replica that says who it is.
func goodAs(t testing.TB, cert tls.Certificate, replica string) (behave func(net.Conn), nodes chan *node) {
	return goodReplica(t, cert, replica, func(*node) {})
}

// goodAfter calls before with each node whose summary it has not asked for: until then the node's
// connection does not grow old.
func goodAfter(t testing.TB, cert tls.Certificate, before func(*node)) (behave func(net.Conn), nodes chan *node) {
	return goodReplica(t, cert, "", before)
}

func goodReplica(t testing.TB, cert tls.Certificate, replica string, before func(*node)) (behave func(net.Conn), nodes chan *node) {
	nodes = make(chan *node, 100)
	return func(conn net.Conn) {
		n := take(t, conn, cert, replica)
		if n == nil {
			return
		}
		before(n)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n.hush = cancel
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://node"+api.SummaryPath, nil)
		must(t, err)
		answer, err := n.Client.RoundTrip(r)
		if err != nil {
			return // the node has left
		}
		defer answer.Body.Close()
		nodes <- n
		lines := json.NewDecoder(answer.Body)
		defer close(n.lines)
		for {
			var line api.Summary
			if lines.Decode(&line) != nil {
				return
			}
			n.lines <- line
		}
	}, nodes
}

// wantAnswer sends a request and returns the body of the answer.
func (n *node) wantAnswer(t testing.TB, code int, method, path, body string) string {
	t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	answer, err := n.Ask(method, path, in)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode != code {
		t.Errorf("%s %s: %d %s, want %d", method, path, answer.StatusCode, text, code)
	}
	return string(text)
}

// next waits for a value.
func next[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-from:
		if !ok {
			t.Fatalf("no %s: it has ended", what)
		}
		return v
	case <-time.After(patience):
		t.Fatalf("still no %s", what)
	}
	panic("not reached")
}

// ended reports whether the summary has ended.
func (n *node) ended() bool {
	for {
		select {
		case _, open := <-n.lines:
			if !open {
				return true
			}
		default:
			return false
		}
	}
}

// nextAsks waits for a line of the summary with asks.
func (n *node) nextAsks(t testing.TB) []api.OwnerAsk {
	t.Helper()
	for {
		if line := next(t, "asks", n.lines); len(line.Asks) > 0 {
			return line.Asks
		}
	}
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// fakeVolumes are the volumes of a node.
type fakeVolumes struct {
	mu       sync.Mutex
	awake    []volume.Description
	holdings []volume.Holding
	owners   map[volume.ID]volume.Owner
	err      error
}

func (f *fakeVolumes) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeVolumes) Awake(context.Context) ([]volume.Description, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.awake), f.err // Own changes it
}

func (f *fakeVolumes) Holdings(context.Context) ([]volume.Holding, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.holdings, f.err
}

func (f *fakeVolumes) Own(_ context.Context, id volume.ID, pod volume.PodUID, owner volume.Owner) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, d := range f.awake {
		if d.Record.ID == id && d.Record.Pod == pod {
			f.awake[i].Record.Owner = owner
			f.owners[id] = owner
			return f.err
		}
	}
	return volume.ErrNotFound
}

// scene is a node with its files, and a log.
type scene struct {
	t       testing.TB
	cfg     Config
	pace    pace
	volumes *fakeVolumes
	// found are the addresses of gatewayName.
	mu    sync.Mutex
	found []netip.Addr
	err   error
	log   bytes.Buffer
}

// quickly is for tests: a failure is followed by the next attempt at once.
var quickly = pace{
	first: time.Millisecond, back: 2 * time.Millisecond, busy: time.Millisecond,
	refused: retry.Backoff{First: time.Millisecond, Longest: 4 * time.Millisecond},
	resolve: 2 * time.Millisecond, missed: 2 * time.Millisecond, connect: patience, lookup: patience,
	life: time.Hour, drain: time.Hour, grace: patience, settled: time.Hour,
	quiet: time.Hour, changes: 5 * time.Millisecond, gather: time.Millisecond, again: time.Hour,
	stall: patience, ping: patience,
}

func newScene(t testing.TB, ca *uplinktest.Authority) *scene {
	t.Helper()
	dir := t.TempDir()
	s := &scene{t: t, pace: quickly, volumes: &fakeVolumes{owners: map[volume.ID]volume.Owner{}}}
	s.resolves(nil, netip.MustParseAddr("127.0.0.1"))
	s.cfg = Config{CAFile: filepath.Join(dir, "ca.crt"), TokenFile: filepath.Join(dir, "token"), Node: "n1", Version: "v1",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }),
		Volumes: s.volumes, Metrics: metrics.New("test", ""), Log: s.logger()}
	must(t, os.WriteFile(s.cfg.CAFile, ca.PEM, 0o600), os.WriteFile(s.cfg.TokenFile, []byte("token-1\n"), 0o600))
	return s
}

func (s *scene) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log.WriteString(prefix + " " + args + "\n")
	}, funcr.Options{})
}

// logged counts the lines of the log that contain a text.
func (s *scene) logged(text string) (count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, text) {
			count++
		}
	}
	return count
}

func (s *scene) logText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func (s *scene) lookup(context.Context, string) ([]netip.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found, s.err
}

// resolves sets what the name resolves to.
func (s *scene) resolves(err error, to ...netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found, s.err = to, err
}

// start starts an Uplink to the port of a gateway; the test stops it at its end.
func (s *scene) start(port string) *Uplink {
	s.t.Helper()
	s.cfg.Gateway = net.JoinHostPort(gatewayName, port)
	return s.startIt()
}

// startIt starts an Uplink to what the configuration names.
func (s *scene) startIt() *Uplink {
	s.t.Helper()
	u, err := start(s.cfg, s.pace, s.lookup)
	must(s.t, err)
	s.t.Cleanup(func() { stop(s.t, u) })
	return u
}

// stop stops an Uplink that may have been stopped before; all that it began must end.
func stop(t testing.TB, u *Uplink) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = u.Stop(ctx) // readers may be cut
	ended := make(chan struct{})
	go func() {
		u.tasks.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("something of the Uplink still runs")
	}
	eventually(t, "all requests have ended", func() bool { return u.running.Load()+u.summaries.Load() == 0 })
}

// state returns the only state that there is.
func state(t testing.TB, u *Uplink) State {
	t.Helper()
	all := u.States()
	if len(all) != 1 {
		t.Fatalf("%d states, %+v, want one", len(all), all)
	}
	return all[0]
}

func record(id, pod string) volume.Record {
	return volume.Record{ID: volume.ID(id), Pod: volume.PodUID("uid-" + pod), Namespace: "ci", PodName: pod, Phase: volume.Published}
}
