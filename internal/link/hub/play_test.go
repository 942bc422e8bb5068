package hub

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/api"
)

// patience is how long tests wait for what has to come.
const patience = 2 * time.Minute

func hash(node string) uint32 {
	h := fnv.New32()
	_, _ = h.Write([]byte(node))
	return h.Sum32() >> 12
}

// cluster plays the API server.
type cluster struct {
	mu sync.Mutex
	// tokens are whose each token is; pods are those that can be read, known those that were watched.
	tokens      map[string]Identity
	pods, known map[string]Pod
	unsynced    bool
	// heard is how new what was watched is.
	heard time.Time
	// down: the API server does not answer.
	down           bool
	reviews, reads int
	onReview       func(context.Context)
	onAsk          func(node string, asks []api.OwnerAsk) []api.OwnerAnswer
}

// add adds a pod on a node, and returns its token.
func (c *cluster) add(pod, uid, node string) (token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := Pod{Name: pod, UID: uid, Node: node, Created: time.Now().Add(-time.Hour)}
	c.pods[pod], c.known[uid] = p, p
	token = "token-" + uid
	c.tokens[token] = Identity{Namespace: "katbox", ServiceAccount: "katbox", Pod: pod, PodUID: uid, Node: node}
	return token
}

func (c *cluster) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

func (c *cluster) Review(ctx context.Context, token string) (Identity, error) {
	c.mu.Lock()
	c.reviews++
	onReview, who, down := c.onReview, c.tokens[token], c.down
	c.mu.Unlock()
	if onReview != nil {
		onReview(ctx)
	}
	switch {
	case down:
		return Identity{}, errors.New("connection refused")
	case who == Identity{}:
		return Identity{}, fmt.Errorf("%w: nobody's", ErrToken)
	}
	return who, nil
}

func (c *cluster) Pod(uid string) (Pod, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.known[uid]
	p.Heard = c.heard
	return p, ok
}

func (c *cluster) Read(_ context.Context, name string) (Pod, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	p, ok := c.pods[name]
	switch {
	case c.down:
		return Pod{}, errors.New("connection refused")
	case !ok:
		return Pod{}, ErrNoPod
	}
	return p, nil
}

func (c *cluster) Nodes() (map[string]time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := map[string]time.Time{}
	for _, p := range c.known {
		since[p.Node] = p.Created
	}
	return since, !c.unsynced
}

func (c *cluster) Expects(node string) bool {
	since, synced := c.Nodes()
	_, ok := since[node]
	return ok || !synced
}

func (c *cluster) Ask(_ context.Context, node string, asks []api.OwnerAsk) []api.OwnerAnswer {
	c.mu.Lock()
	onAsk := c.onAsk
	c.mu.Unlock()
	if onAsk == nil {
		return nil
	}
	return onAsk(node, asks)
}

// counts are the metrics of a registry.
type counts struct {
	mu sync.Mutex
	by map[string]int
}

func (c *counts) ConnectionAsked(outcome string) { c.add("connections " + outcome) }
func (c *counts) TokenReviewed(outcome string)   { c.add("reviews " + outcome) }
func (c *counts) TokenRead()                     { c.add("read") }

func (c *counts) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[what]++
}

// stage is a registry with all around it.
type stage struct {
	*Registry
	t       testing.TB
	cluster *cluster
	server  *httptest.Server
	tls     *tls.Config
	// certificates are the server's; none is one of httptest.
	certificates []tls.Certificate
}

// newStage returns a registry that does not listen.
func newStage(t testing.TB) *stage {
	c := &cluster{tokens: map[string]Identity{}, pods: map[string]Pod{}, known: map[string]Pod{}}
	r, err := New(Config{
		Reviewer: c, Expected: c, Owners: c, Namespace: "katbox", ServiceAccount: "katbox", Hash: hash,
		Metrics: &counts{by: map[string]int{}}, Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &stage{Registry: r, t: t, cluster: c}
}

// listen lets the registry listen with TLS. change may change the server before.
func (s *stage) listen(change func(*http.Server)) *stage {
	s.server = httptest.NewUnstartedServer(nil)
	s.server.Config = s.Server(&tls.Config{Certificates: s.certificates})
	if change != nil {
		change(s.server.Config)
	}
	s.server.TLS = s.server.Config.TLSConfig
	s.server.Listener = s.Bounded(s.server.Listener)
	s.server.StartTLS()
	s.t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.server.Close()
	})
	s.tls = s.server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	s.tls.NextProtos = nil
	s.tls.ServerName = "example.com"
	return s
}

// request returns a request to connect that is well-formed.
func request(node, token string) *http.Request {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://gateway"+api.ConnectPath, nil)
	if err != nil {
		panic(err)
	}
	r.Header = http.Header{
		"Authorization": {"Bearer " + token}, "Connection": {"Upgrade"}, "Upgrade": {api.ConnectProtocol},
		api.HeaderNode: {node}, api.HeaderVersion: {"test"},
	}
	return r
}

// dial sends a request over a connection of its own. The answer is 101, or its body has been read.
func (s *stage) dial(r *http.Request) (net.Conn, *http.Response) {
	s.t.Helper()
	conn, err := tls.Dial("tcp", s.server.Listener.Addr().String(), s.tls)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	answer, err := ask(conn, r)
	if err != nil {
		s.t.Fatal(err)
	}
	return conn, answer
}

func ask(conn net.Conn, r *http.Request) (*http.Response, error) {
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReaderSize(conn, 1), r)
}

// player plays a node.
type player struct {
	conn net.Conn
	// ended is closed when the connection is.
	ended chan struct{}
	end   func()
	http.Handler
	// lines are the summaries that it sends.
	lines chan string
	// owners are the answers that it gets.
	owners chan api.OwnerAnswers
	asked  atomic.Int64
	// used is closed when the gateway asks for summaries: it has registered the connection.
	used     chan struct{}
	usedOnce sync.Once
}

// ServeHTTP answers the gateway.
func (p *player) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case api.SummaryPath:
		p.usedOnce.Do(func() { close(p.used) })
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case line, ok := <-p.lines:
				if !ok {
					return
				}
				for piece := range slices.Chunk([]byte(line), 1000) { // as uplink does it
					_, _ = w.Write(piece)
					_ = http.NewResponseController(w).Flush()
				}
			}
		}
	case api.OwnersPath:
		var answers api.OwnerAnswers
		if err := json.NewDecoder(r.Body).Decode(&answers); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p.owners <- answers
		fmt.Fprintln(w, `{"kept":1}`)
	default:
		p.asked.Add(1)
		if p.Handler != nil {
			p.Handler.ServeHTTP(w, r)
			return
		}
		fmt.Fprintln(w, `{"items":[]}`)
	}
}

// say sends a line of the summary.
func (p *player) say(s api.Summary) {
	line, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	p.lines <- string(line) + "\n"
}

// once is a listener with one connection.
type once struct {
	net.Conn
	taken atomic.Bool
	ended chan struct{}
}

func (o *once) Accept() (net.Conn, error) {
	if o.taken.CompareAndSwap(false, true) {
		return o.Conn, nil
	}
	<-o.ended
	return nil, net.ErrClosed
}

func (o *once) Addr() net.Addr { return o.LocalAddr() }

// Close leaves the connection open.
func (o *once) Close() error { return nil }

// closing closes a channel when a connection is closed.
type closing struct {
	plain
	ended chan struct{}
	once  sync.Once
}

func (c *closing) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}

// serve plays a node on a connection that was upgraded.
func serve(conn net.Conn, h http.Handler) *player {
	p := newPlayer(conn, h)
	p.serve(p)
	return p
}

// serveWith is serve for a node that answers everything with one handler.
func serveWith(conn net.Conn, h http.Handler) *player {
	p := newPlayer(conn, h)
	p.serve(h)
	return p
}

func newPlayer(conn net.Conn, h http.Handler) *player {
	return &player{
		conn: conn, Handler: h, ended: make(chan struct{}), used: make(chan struct{}),
		lines: make(chan string, 100), owners: make(chan api.OwnerAnswers, 100),
	}
}

func (p *player) serve(h http.Handler) {
	server := &http.Server{Handler: h, Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 128}}
	server.Protocols.SetUnencryptedHTTP2(true)
	wrapped := &closing{plain: plain{p.conn}, ended: p.ended}
	p.end = func() {
		wrapped.Close()
		server.Close()
	}
	go func() { _ = server.Serve(&once{Conn: wrapped, ended: p.ended}) }()
}

// connect connects a node, which says nothing yet.
func (s *stage) connect(node, token string, h http.Handler) *player {
	s.t.Helper()
	conn, answer := s.dial(request(node, token))
	if answer.StatusCode != http.StatusSwitchingProtocols {
		body, _ := io.ReadAll(answer.Body)
		s.t.Fatalf("connect %s: %s: %s", node, answer.Status, body)
	}
	p := serve(conn, h)
	s.t.Cleanup(p.end)
	select {
	case <-p.used:
	case <-p.ended:
	case <-time.After(patience):
		s.t.Fatal("the gateway does not ask for summaries")
	}
	return p
}

// node adds a node to the cluster and connects it. It holds what it is said to.
func (s *stage) node(name string, h http.Handler, holdings ...api.Holding) *player {
	s.t.Helper()
	p := s.connect(name, s.cluster.add("katbox-"+name, "uid-"+name, name), h)
	p.say(api.Summary{Full: true, Holdings: holdings})
	s.wait("the summary of "+name, func() bool {
		n := s.find(name)
		return n != nil && n.look().heard != nil
	})
	return p
}

// wait waits until something is so.
func (s *stage) wait(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// ended waits until a node's connection is closed.
func (p *player) isEnded(t testing.TB) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatal("the connection is still open")
	}
}

func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return c
}
