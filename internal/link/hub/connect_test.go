package hub

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/katbox/katbox/internal/model/api"
)

// TestConnect: a node connects, says what it holds, and is asked.
func TestConnect(t *testing.T) {
	s := newStage(t).listen(nil)
	token := s.cluster.add("katbox-n1", "uid-n1", "n1")
	if missing := s.Missing(); len(missing) != 1 || missing[0].Node != "n1" || missing[0].Reason != NotConnected ||
		missing[0].Since.Sub(s.started).Abs() > time.Minute { // told by another reading of both clocks
		t.Fatalf("missing before: %+v", missing)
	}
	if states := s.ByHash(hash("n1")); len(states) != 1 || states[0].Conn != nil || states[0].Reason != NotConnected {
		t.Fatalf("states before: %+v", states)
	}
	p := s.connect("n1", token, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/volumes" || r.URL.Query().Get("namespace") != "ci" || r.Header.Get(api.HeaderUser) != "alice" {
			http.Error(w, r.URL.String(), http.StatusTeapot)
			return
		}
		_, _ = io.WriteString(w, `{"items":[{"id":"a","node":"n1"}],"continue":"c"}`)
	}))
	s.wait("the connection", func() bool { _, ok := s.Get("n1"); return ok })
	if held := s.With("ci"); len(held) != 1 || held[0].Holdings[0].Namespace != "*" {
		t.Fatalf("before the first summary the node may hold anything, not %+v", held)
	}
	if missing := s.Missing(); len(missing) != 0 {
		t.Fatalf("missing: %+v", missing)
	}
	now := time.Unix(1700000000, 5)
	p.say(api.Summary{Full: true, Holdings: []api.Holding{
		{Namespace: "ci", NamespaceUID: "u", Verdict: "Confirmed", Volumes: 7, Newest: now, Oldest: now},
	}})
	s.wait("the summary", func() bool { h := s.With("ci"); return len(h) == 1 && h[0].Holdings[0].Volumes == 7 })
	if held := s.With("other"); len(held) != 0 {
		t.Fatalf("nodes with another namespace: %+v", held)
	}
	conn, _ := s.Get("n1")
	list, err := conn.Client().OnBehalf("alice", "id").List(ctx(t), api.Query{Namespace: "ci", Limit: 8})
	if err != nil || len(list.Items) != 1 || list.Items[0].ID != "a" || list.Continue != "c" {
		t.Fatalf("list: %+v, %v", list, err)
	}
	if states := s.ByHash(hash("n1")); len(states) != 1 || states[0].Conn == nil || states[0].Reason != "" {
		t.Fatalf("states: %+v", states)
	}
	if c := s.Counts(); c != (Counts{Expected: 1, Connected: 1}) {
		t.Fatalf("counts: %+v", c)
	}

	p.end()
	s.wait("the end of the connection", func() bool { _, ok := s.Get("n1"); return !ok })
	if missing := s.Missing(); len(missing) != 1 || !missing[0].Since.After(s.started) {
		t.Fatalf("missing afterwards: %+v", missing)
	}
	if _, err := conn.Client().List(ctx(t), api.Query{}); err == nil || !strings.Contains(err.Error(), "not connected") {
		t.Fatalf("list of a node that is gone: %v", err)
	}
}

// TestRefusals: who may not connect is told why, and nothing of it remains (T6, T7).
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cluster func(*cluster)
		request func(*http.Request)
		code    int
		says    string
		outcome string
	}{
		{name: "another path", request: func(r *http.Request) { r.URL.Path = "/v1/volumes" }, code: 404, says: "/v1/connect"},
		{name: "another method", request: func(r *http.Request) { r.Method = http.MethodPut }, code: 405, says: "GET"},
		{name: "no upgrade", request: func(r *http.Request) { r.Header.Del("Upgrade") }, code: 426, says: "katbox-node/1"},
		{name: "another protocol", request: func(r *http.Request) { r.Header.Set("Upgrade", "katbox-node/2") }, code: 426, says: "katbox-node/1"},
		{name: "a body", request: func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1
		}, code: 400, says: "no body"},
		{name: "no token", request: func(r *http.Request) { r.Header.Del("Authorization") }, code: 401, says: "--gateway-token"},
		{name: "no bearer", request: func(r *http.Request) { r.Header.Set("Authorization", "Basic eDp4") }, code: 401, says: "bearer"},
		{name: "a token of nobody", request: func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, code: 401, says: "nobody's"},
		{name: "another ServiceAccount", cluster: func(c *cluster) {
			c.tokens["token-u1"] = Identity{"katbox", "default", "s1", "p1", "u1", "n1"}
		}, code: 403, says: "katbox/default"},
		{name: "another namespace", cluster: func(c *cluster) {
			c.tokens["token-u1"] = Identity{"evil", "katbox", "s1", "p1", "u1", "n1"}
		}, code: 403, says: "evil/katbox"},
		{name: "bound to no pod", cluster: func(c *cluster) {
			c.tokens["token-u1"] = Identity{"katbox", "katbox", "s1", "", "", ""}
		}, code: 403, says: "not bound to a pod"},
		{name: "the pod is gone", cluster: func(c *cluster) { clear(c.pods); clear(c.known) }, code: 403, says: "no pod p1"},
		{name: "the pod is another one", cluster: func(c *cluster) {
			clear(c.known)
			c.pods["p1"] = Pod{Name: "p1", UID: "u2", Node: "n1"}
		}, code: 403, says: "earlier pod"},
		{name: "the pod has another name", cluster: func(c *cluster) {
			c.known["u1"] = Pod{Name: "p2", UID: "u1", Node: "n1"}
		}, code: 403, says: "earlier pod"},
		{name: "claims another node", request: func(r *http.Request) { r.Header.Set(api.HeaderNode, "n2") }, code: 403, says: `"n2"`},
		{name: "claims no node", request: func(r *http.Request) { r.Header.Del(api.HeaderNode) }, code: 403, says: `"n1"`},
		{name: "the token says another node", cluster: func(c *cluster) {
			c.tokens["token-u1"] = Identity{"katbox", "katbox", "s1", "p1", "u1", "n2"}
		}, request: func(r *http.Request) { r.Header.Set(api.HeaderNode, "n2") }, code: 403, says: `"n2"`},
		{name: "the pod is on no node", cluster: func(c *cluster) {
			clear(c.known)
			c.pods["p1"] = Pod{Name: "p1", UID: "u1"}
		}, code: 503, says: "no node yet", outcome: "failed"},
		{name: "no API server", cluster: func(c *cluster) { c.down = true }, code: 503, says: "connection refused", outcome: "failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t).listen(nil)
			r := request("n1", s.cluster.add("p1", "u1", "n1"))
			if tt.cluster != nil {
				s.cluster.change(func() { tt.cluster(s.cluster) })
			}
			if tt.request != nil {
				tt.request(r)
			}
			_, answer := s.dial(r)
			var status api.Status
			if err := json.NewDecoder(answer.Body).Decode(&status); err != nil || answer.StatusCode != tt.code {
				t.Fatalf("answered %s, %v, want %d", answer.Status, err, tt.code)
			}
			if status.Kind != "Status" || status.Code != tt.code || status.Reason == "" || !strings.Contains(status.Message, tt.says) {
				t.Errorf("answered %+v, want %d and %q", status, tt.code, tt.says)
			}
			if again := answer.Header.Get("Retry-After"); (tt.code == 503) != (again != "") {
				t.Errorf("Retry-After is %q", again)
			}
			if all := s.all(); len(all) != 0 {
				t.Errorf("the registry has %d nodes", len(all))
			}
			if tt.outcome == "" {
				tt.outcome = "refused"
			}
			if n := s.counted("connections", tt.outcome); n != 1 {
				t.Errorf("counted %v as %s", n, tt.outcome)
			}
		})
	}
}

// counted returns what a metric of the registry counts: connections or reviews.
func (s *stage) counted(metric, outcome string) int {
	c := s.Metrics.(*counts)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[metric+" "+outcome]
}

// TestNoTLS: over a connection without TLS nobody is let in, whatever the token.
func TestNoTLS(t *testing.T) {
	s := newStage(t)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, request("n1", s.cluster.add("p1", "u1", "n1")))
	if w.Code != http.StatusForbidden || s.cluster.reviews != 0 {
		t.Errorf("answered %d after %d reviews", w.Code, s.cluster.reviews)
	}
}

// TestOldTLS: nodes have to speak TLS 1.3.
func TestOldTLS(t *testing.T) {
	s := newStage(t).listen(nil)
	s.tls.MaxVersion = tls.VersionTLS12
	conn, err := tls.Dial("tcp", s.server.Listener.Addr().String(), s.tls)
	if err == nil {
		conn.Close()
		t.Error("connected with TLS 1.2")
	}
}

// TestPodIsReadOnce: a pod that is not known yet is read by its name; so is that of a token that does
// not say its node, as those of API servers before 1.30.
func TestPodIsReadOnce(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cluster func(*cluster)
		reads   int
	}{
		{"the pod is known", func(*cluster) {}, 0},
		{"the pod is not known yet", func(c *cluster) { clear(c.known) }, 1},
		{"the token does not say the node", func(c *cluster) { c.tokens["token-u1"] = Identity{"katbox", "katbox", "s1", "p1", "u1", ""} }, 0},
		{"neither", func(c *cluster) {
			clear(c.known)
			c.tokens["token-u1"] = Identity{"katbox", "katbox", "s1", "p1", "u1", ""}
		}, 1},
		{"the pod was seen before it was on a node", func(c *cluster) { c.known["u1"] = Pod{Name: "p1", UID: "u1"} }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t).listen(nil)
			token := s.cluster.add("p1", "u1", "n1")
			s.cluster.change(func() { tt.cluster(s.cluster) })
			s.connect("n1", token, nil)
			s.cluster.change(func() {
				if s.cluster.reads != tt.reads || s.cluster.reviews != 1 {
					t.Errorf("read %d pods and reviewed %d tokens, want %d and 1", s.cluster.reads, s.cluster.reviews, tt.reads)
				}
			})
		})
	}
}

// TestEarlyBytes: what comes before the answer would be lost, so the connection is closed.
func TestEarlyBytes(t *testing.T) {
	s := newStage(t).listen(nil)
	token := s.cluster.add("p1", "u1", "n1")
	conn, err := tls.Dial("tcp", s.server.Listener.Addr().String(), s.tls)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var whole strings.Builder
	if err := request("n1", token).Write(&whole); err != nil {
		t.Fatal(err)
	}
	whole.WriteString("early")
	if _, err := io.WriteString(conn, whole.String()); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if answer, err := io.ReadAll(conn); err != nil || len(answer) != 0 {
		t.Errorf("answered %q, %v", answer, err)
	}
	if len(s.all()) != 0 {
		t.Error("the node is connected")
	}
}

// TestSlowClients: who does not finish what it begins is cut off, in the handshake and in the request.
func TestSlowClients(t *testing.T) {
	s := newStage(t)
	if d := s.Server(&tls.Config{}); d.ReadHeaderTimeout <= 0 || d.ReadTimeout <= 0 || d.IdleTimeout <= 0 || d.MaxHeaderBytes > mostHeader {
		t.Errorf("the server has no limits: %+v", d)
	}
	s.listen(func(h *http.Server) { h.ReadHeaderTimeout, h.ReadTimeout = 50*time.Millisecond, 50*time.Millisecond })
	address := s.server.Listener.Addr().String()
	silent, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	open := []net.Conn{silent}
	// Under load it is cut off in the handshake already.
	if slow, err := tls.Dial("tcp", address, s.tls); err == nil {
		defer slow.Close()
		if _, err := io.WriteString(slow, "GET /v1/connect HTTP/1.1\r\nHost: x\r\n"); err == nil {
			open = append(open, slow)
		}
	}
	for _, conn := range open {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection stays open")
		}
	}
}

// TestPending: connections that were not upgraded are bounded, and a new one takes the place of the oldest.
func TestPending(t *testing.T) {
	s := newStage(t)
	s.limits.silent, s.limits.asking = 2, 2
	s.listen(func(h *http.Server) { h.ReadHeaderTimeout, h.ReadTimeout = time.Hour, time.Hour })
	var all []net.Conn
	for range 3 {
		all = append(all, s.from("127.0.0.1"))
	}
	_ = all[0].SetReadDeadline(time.Now().Add(patience))
	if n, err := all[0].Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes on a connection that should be closed", n)
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the oldest connection stays open")
	}
	if n := s.counted("connections", "busy"); n != 1 {
		t.Errorf("counted %v as busy", n)
	}
}

// from opens a connection from one of this machine's addresses.
func (s *stage) from(address string) net.Conn {
	s.t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// TestCrowdShutsNoNodeOut: whatever one address does without a token, a node of another one connects, and a connection of
// its own that was open before stays.
func TestCrowdShutsNoNodeOut(t *testing.T) {
	const crowd = "127.0.0.2"
	for name, does := range map[string]func(*stage, net.Conn){
		"silent": func(*stage, net.Conn) {},
		"TLS and no request": func(s *stage, c net.Conn) {
			_ = tls.Client(c, s.tls).Handshake() // it may have been closed for the next one
		},
		"half a request": func(s *stage, c net.Conn) {
			_, _ = io.WriteString(tls.Client(c, s.tls), "GET /v1/connect HTTP/1.1\r\n")
		},
		"half a handshake": func(_ *stage, c net.Conn) { _, _ = c.Write([]byte{22, 3, 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.limits.silent, s.limits.asking = 10, 10
			s.listen(func(h *http.Server) { h.ReadHeaderTimeout, h.ReadTimeout = time.Hour, time.Hour })
			first := s.from("127.0.0.3")
			for range 50 {
				does(s, s.from(crowd))
			}
			s.node("n1", nil)
			if err := tls.Client(first, s.tls).Handshake(); err != nil {
				t.Errorf("a connection of another address was closed: %v", err)
			}
		})
	}
}

// TestUpgradedDoNotCount: a connection of a node makes room for the next client.
func TestUpgradedDoNotCount(t *testing.T) {
	s := newStage(t)
	s.limits.silent, s.limits.asking = 1, 1
	s.listen(nil)
	for _, n := range []string{"n1", "n2", "n3"} {
		s.node(n, nil)
	}
}

// TestBusy: while reviews are stuck, requests of one address wait for a bounded time and in bounded
// number, and then have to come again.
func TestBusy(t *testing.T) {
	s := newStage(t)
	s.reviews = rate.NewLimiter(rate.Inf, 1)
	stuck, release := make(chan struct{}), make(chan struct{})
	s.cluster.onReview = func(context.Context) {
		stuck <- struct{}{}
		<-release
	}
	for range reviewsAtOnce {
		go s.review(context.Background(), "10.0.0.1", "x")
	}
	for range reviewsAtOnce {
		select {
		case <-stuck:
		case <-ctx(t).Done():
			t.Fatal("the reviews do not begin")
		}
	}
	s.limits.wait = time.Millisecond
	_, no := s.review(ctx(t), "10.0.0.2", "x")
	if no == nil || no.code != 503 || no.retry < 2*time.Second || no.outcome != "busy" {
		t.Errorf("answered %+v", no)
	}
	close(release)

	var q queue
	var leave []func()
	for range mostWaiting {
		l, ok := q.enter("a")
		if !ok {
			t.Fatal("the queue is full")
		}
		leave = append(leave, l)
	}
	if _, ok := q.enter("a"); ok {
		t.Error("the queue takes any number")
	}
	if l, ok := q.enter("b"); !ok {
		t.Error("one address keeps others out")
	} else {
		l()
	}
	leave[0]()
	if l, ok := q.enter("a"); !ok {
		t.Error("the queue has no room again")
	} else {
		l()
	}
	for _, l := range leave[1:] {
		l()
	}
	if len(q.waiting) != 0 {
		t.Errorf("the queue keeps %v", q.waiting)
	}
}

// TestRate: no more than 200 tokens are reviewed a second.
func TestRate(t *testing.T) {
	s := newStage(t)
	if s.reviews.Limit() != 200 || s.reviews.Burst() > 20 {
		t.Errorf("the limit is %v with a burst of %d", s.reviews.Limit(), s.reviews.Burst())
	}
}

// TestClose: a registry that was closed has no connections and takes none.
func TestClose(t *testing.T) {
	s := newStage(t).listen(nil)
	p := s.node("n1", nil)
	s.Close()
	p.isEnded(t)
	_, answer := s.dial(request("n1", "token-uid-n1"))
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("answered %s", answer.Status)
	}
}

// TestNew: a configuration that lacks something is refused by name.
func TestNew(t *testing.T) {
	c := &cluster{}
	whole := Config{Reviewer: c, Expected: c, Owners: c, Namespace: "a", ServiceAccount: "b", Hash: hash}
	for name, change := range map[string]func(*Config){
		"Reviewer": func(c *Config) { c.Reviewer = nil }, "Expected": func(c *Config) { c.Expected = nil },
		"Owners": func(c *Config) { c.Owners = nil }, "Namespace": func(c *Config) { c.Namespace = "" },
		"ServiceAccount": func(c *Config) { c.ServiceAccount = "" }, "Hash": func(c *Config) { c.Hash = nil },
	} {
		lacking := whole
		change(&lacking)
		if _, err := New(lacking); err == nil || !strings.Contains(err.Error(), "Config."+name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestReplicaSaysWhoItIs, so that a node with two addresses of it keeps one connection.
func TestReplicaSaysWhoItIs(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		s := newStage(t).listen(nil)
		for range 2 {
			conn, answer := s.dial(request("n1", s.cluster.add("p1", "u1", "n1")))
			defer conn.Close()
			seen[answer.Header.Get(api.HeaderReplica)] = true
		}
	}
	if seen[""] || len(seen) != 2 {
		t.Errorf("two replicas call themselves %v", seen)
	}
}
