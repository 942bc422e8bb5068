package uplink

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// preface is how a client begins with HTTP/2, and noSettings a frame SETTINGS without settings.
const (
	preface    = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	noSettings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
)

// drain reads what the node sends until it closes the connection.
func drain(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// TestGatewayHangs: at whatever stage a gateway hangs, the node gives up, tries again, asks without
// waiting, and stops at once.
func TestGatewayHangs(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	cert := ca.Leaf(t, gatewayName)
	sending := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			if secure, _, err := uplinktest.Read(conn, cert); err == nil {
				_, _ = io.WriteString(secure, text)
				drain(secure)
			}
		}
	}
	for name, tt := range map[string]struct {
		behave func(net.Conn)
		want   string
	}{
		"before TLS":         {drain, "begin TLS"},
		"before it answers":  {sending(""), "did not answer the request"},
		"within its answer":  {sending("HTTP/1.1 101 Swit"), "did not answer the request"},
		"before a refusal":   {sending("HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\nx"), "(403)"},
		"after its answer":   {sending(uplinktest.Switching), "does not ask for the summary"},
		"within the preface": {sending(uplinktest.Switching + preface[:5]), "does not ask for the summary"},
		"after the preface":  {sending(uplinktest.Switching + preface), "does not ask for the summary"},
		"before a request":   {sending(uplinktest.Switching + preface + noSettings), "does not ask for the summary"},
		"with other requests": {func(conn net.Conn) {
			if n := take(t, conn, cert, ""); n != nil {
				for err := error(nil); err == nil; {
					var answer *http.Response
					if answer, err = n.Ask(http.MethodGet, "/v1/volumes", nil); err == nil {
						answer.Body.Close()
					}
				}
			}
		}, "does not ask for the summary"},
	} {
		t.Run(name, func(t *testing.T) {
			g := startGateway(t, "127.0.0.1:0", tt.behave)
			s := newScene(t, ca)
			s.pace.connect = 50 * time.Millisecond
			u := s.start(g.port())
			for range 2 * mostAsks {
				u.Published(record("csi-1", "a"))
			}
			eventually(t, "another attempt", func() bool { return g.accepted() >= 3 })
			eventually(t, "the cause", func() bool {
				st := state(t, u)
				return st.Err != nil && strings.Contains(st.Err.Error(), tt.want)
			})
			metricstest.Of(t, s.cfg.Metrics).Want(t, "hanging", metricstest.Values{
				"katbox_gateway_connected": 0, `katbox_gateway_connects_total{outcome="connected"}`: 0,
				`katbox_gateway_asks_total{outcome="dropped"}`: 0,
			})
		})
	}
}

// TestGatewayGoesSilent: a gateway that neither reads nor answers any more is noticed, and what runs
// for it ends.
func TestGatewayGoesSilent(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	cert := ca.Leaf(t, gatewayName)
	stalled := make(chan *stall, 10)
	behave, nodes := good(t, cert)
	var first atomic.Bool
	g := startGateway(t, "127.0.0.1:0", func(conn net.Conn) {
		if first.CompareAndSwap(false, true) {
			silent := &stall{Conn: conn, until: make(chan struct{})}
			stalled <- silent
			conn = silent
		}
		behave(conn)
	})
	s := newScene(t, ca)
	s.pace.ping, s.pace.stall = 200*time.Millisecond, 200*time.Millisecond
	var running atomic.Int64
	s.cfg.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		for {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	})
	s.start(g.port())
	n := next(t, "node", nodes)
	// On a busy machine the connection may be taken for silent before it is.
	if answer, err := n.Ask(http.MethodGet, "/v1/volumes", nil); err == nil {
		defer answer.Body.Close()
	}
	eventually(t, "a stream", func() bool { return running.Load() == 1 || n.Client.Err() != nil })
	silent := next(t, "connection", stalled)
	silent.stop()
	next(t, "node again", nodes)
	eventually(t, "the stream has ended", func() bool { return running.Load() == 0 })
	silent.Close()
}

// stall is a connection that stops to read when it is told so.
type stall struct {
	net.Conn
	stopped atomic.Bool
	until   chan struct{}
	once    sync.Once
}

func (s *stall) stop() { s.stopped.Store(true) }

func (s *stall) Read(p []byte) (int, error) {
	if s.stopped.Load() {
		<-s.until
	}
	return s.Conn.Read(p)
}

func (s *stall) Close() error {
	s.once.Do(func() { close(s.until) })
	return s.Conn.Close()
}

// TestGatewayFloods: it gets as many streams as are allowed, and the other gateway is served.
func TestGatewayFloods(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behaveA, nodesA := good(t, ca.Leaf(t, gatewayName))
	behaveB, nodesB := good(t, ca.Leaf(t, gatewayName))
	a, b := pair(t, behaveA, behaveB)
	s := newScene(t, ca)
	s.resolves(nil, a.address(), b.address())
	var running, most atomic.Int64
	s.cfg.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/volumes/quick" {
			return
		}
		now := running.Add(1)
		defer running.Add(-1)
		for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
		}
		<-r.Context().Done()
	})
	u := s.start(a.port())
	n, other := next(t, "node", nodesA), next(t, "node", nodesB)
	var requests sync.WaitGroup
	for range 1000 {
		requests.Go(func() {
			if answer, err := n.Ask(http.MethodGet, "/v1/volumes", nil); err == nil {
				answer.Body.Close()
			}
		})
	}
	eventually(t, "as many as are allowed run", func() bool { return running.Load() == mostStreams-1 }) // the summary is another
	other.wantAnswer(t, 200, http.MethodGet, "/v1/volumes/quick", "")
	u.Published(record("csi-1", "a"))
	if got := most.Load(); got >= mostStreams {
		t.Errorf("%d streams ran at once", got)
	}
	stop(t, u)
	requests.Wait()
	if running.Load() != 0 {
		t.Errorf("%d still run", running.Load())
	}
}

// TestManySummaries: a gateway reads one summary of a connection at a time.
func TestManySummaries(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behave, nodes := good(t, ca.Leaf(t, gatewayName))
	g := startGateway(t, "127.0.0.1:0", behave)
	s := newScene(t, ca)
	u := s.start(g.port())
	n := next(t, "node", nodes)
	for range 20 {
		answer, err := n.Ask(http.MethodGet, api.SummaryPath, nil)
		must(t, err)
		defer answer.Body.Close()
	}
	eventually(t, "one is left", func() bool {
		u.asks.mu.Lock()
		defer u.asks.mu.Unlock()
		return len(u.asks.listeners) == 1 && u.summaries.Load() == 1
	})
	for range n.lines { // the first has ended
	}
}
