package uplink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
)

const (
	// mostStreams bounds the requests that one gateway may have open on a connection: those that
	// internal/model/api allows at once, some that are about to be refused, and the summary.
	mostStreams = 128
	// mostHeader bounds the header of a request, as on the admin socket.
	mostHeader = 64 << 10
	// mostUnread bounds what the gateway may send before a handler reads it.
	mostUnread = 256 << 10
	// readFrame is the smallest size of frames that HTTP/2 allows.
	readFrame = 16 << 10
	// requestRate and requestBurst bound how often a gateway may ask on a connection. More waits: each
	// request is a question to the owner of all volumes, who has CSI calls to see to.
	requestRate  = 200
	requestBurst = 200
)

// connection is an open connection to a gateway, on which the node serves.
type connection struct {
	u      *Uplink
	wire   *wire
	server *http.Server
	began  time.Time
	// link made it; gateway is its address, replica which one answered there; forwards: that asks others.
	link             *link
	gateway, replica string
	forwards         bool
	// running counts the requests that are handled on it, but for the summary.
	running atomic.Int64
	// leaveContext ends when the connection is no longer to be used; leaving ends it.
	leaveContext context.Context
	leaving      context.CancelFunc
	limit        *rate.Limiter
	// receiving bounds how many answers about owners are received at once.
	receiving chan struct{}
	// asked is closed when the gateway has asked for the summary: it uses the connection.
	asked     chan struct{}
	askedOnce sync.Once
	// endSummary ends the summary that runs.
	summaryMu  sync.Mutex
	endSummary context.CancelFunc
}

// serve begins to serve on a wire. said is the header of the answer to the request to connect. The error is an [errSame] where
// another address has a connection to the same replica.
func (u *Uplink) serve(l *link, w *wire, said http.Header) (*connection, error) {
	replica := replicaOf(said)
	ctx, leaving := context.WithCancel(context.Background())
	c := &connection{u: u, wire: w, began: time.Now(), link: l, gateway: l.address.String(), replica: replica, forwards: forwards(said),
		leaveContext: ctx, leaving: leaving, limit: rate.NewLimiter(requestRate, requestBurst), asked: make(chan struct{}),
		receiving: make(chan struct{}, mostOwning)}
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true) // what is encrypted is below
	c.server = &http.Server{
		Handler: http.HandlerFunc(c.handle), Protocols: protocols, MaxHeaderBytes: mostHeader, ReadHeaderTimeout: u.pace.connect,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: mostStreams, MaxReadFrameSize: readFrame,
			MaxReceiveBufferPerConnection: mostUnread, MaxReceiveBufferPerStream: mostUnread,
			SendPingTimeout: u.pace.ping, PingTimeout: u.pace.ping, WriteByteTimeout: u.pace.stall,
		},
		// A gateway could fill the log.
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(l.log.WithName("http")), slog.LevelDebug),
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stopped {
		w.Close()
		return nil, errStopping
	}
	if other := u.other(l, replica); other != "" {
		w.Close()
		leaving()
		return nil, &errSame{replica: replica, address: other}
	}
	u.connections[c] = struct{}{}
	u.tasks.Go(func() {
		// It returns when the wire is closed, or at once when the server is shut down.
		_ = c.server.Serve(&once{wire: w, ended: make(chan struct{})})
		<-w.closed
		leaving()
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.connections, c)
	})
	return c, nil
}

// over is closed when the connection has ended. It is nil for a nil connection.
func (c *connection) over() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.wire.closed
}

// open reports whether the connection is there and has not ended.
func (c *connection) open() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.over():
		return false
	default:
		return true
	}
}

// retire lets what runs on the connection go on for a while, and then closes it. It tells the gateway
// to ask elsewhere.
func (c *connection) retire() {
	if c == nil {
		return
	}
	c.leaving()
	c.u.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), c.u.pace.drain)
		defer cancel()
		stop := context.AfterFunc(ctx, func() { c.cut() })
		defer stop()
		go func() {
			<-c.wire.closed
			cancel()
		}()
		_ = c.server.Shutdown(ctx) // what is left is cut
		c.cut()
	})
}

// leave is retire where no other connection to the replica follows: once nothing else runs the summary ends, too, which
// the replica would read on.
func (c *connection) leave() {
	if c == nil {
		return
	}
	c.retire()
	c.u.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), c.u.pace.drain)
		defer cancel()
		c.alone(ctx)
		c.replaceSummary(nil)
	})
}

// goAway tells the gateway to ask elsewhere, and does not wait.
func (c *connection) goAway() {
	c.leaving()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.server.Shutdown(ctx) // it has told that before it waits
}

// cut closes the connection.
func (c *connection) cut() {
	if c != nil {
		c.server.Close()
		c.wire.Close()
	}
}

// cause returns why the connection has ended.
func (c *connection) cause() error {
	err := c.wire.failure()
	switch {
	case err == nil, errors.Is(err, net.ErrClosed):
		return fmt.Errorf("%s does not answer, or breaks the rules of HTTP/2", c.u.peer)
	}
	return plain(err)
}

// inUse waits until the gateway asks on the connection.
func (c *connection) inUse(ctx context.Context) error {
	select {
	case <-c.asked:
		return nil
	case <-c.over():
		return fmt.Errorf("%s took the connection and ended it without a question: %w", c.u.peer, c.cause())
	case <-ctx.Done():
		return fmt.Errorf("%s took the connection and does not ask for the summary: %w", c.u.peer, plain(ctx.Err()))
	}
}

// wire is the connection below HTTP/2. It is not a [tls.Conn]: net/http would begin a handshake.
type wire struct {
	net.Conn
	raw *gathered
	// rest was received before; it is read first.
	rest   []byte
	closed chan struct{}
	once   sync.Once

	mu sync.Mutex
	// first is the first error.
	first error
}

// newWire returns a wire of what is secured on raw.
func newWire(secure *tls.Conn, raw *gathered, rest []byte) *wire {
	return &wire{Conn: secure, raw: raw, rest: rest, closed: make(chan struct{})}
}

// Read reads what was received. One goroutine at a time may call it.
func (w *wire) Read(p []byte) (int, error) {
	if len(w.rest) > 0 {
		n := copy(p, w.rest)
		w.rest = w.rest[n:]
		return n, nil
	}
	n, err := w.Conn.Read(p)
	w.note(err)
	return n, err
}

// Write sends. One goroutine at a time may call it.
func (w *wire) Write(p []byte) (int, error) {
	n, err := w.raw.together(func() (int, error) { return w.Conn.Write(p) })
	w.note(err)
	return n, err
}

func (w *wire) note(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == nil {
		w.first = err
	}
}

func (w *wire) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

// Close closes the connection. TLS would wait for five seconds to say goodbye to a gateway that does
// not read.
func (w *wire) Close() error {
	w.once.Do(func() {
		w.raw.Close()
		close(w.closed)
	})
	return nil
}

// once is a listener with one connection.
type once struct {
	*wire
	taken     atomic.Bool
	ended     chan struct{}
	endedOnce sync.Once
}

// Accept returns the connection. Called again it waits until that is closed, or the listener.
func (o *once) Accept() (net.Conn, error) {
	if o.taken.CompareAndSwap(false, true) {
		return o.wire, nil
	}
	select {
	case <-o.closed:
	case <-o.ended:
	}
	return nil, net.ErrClosed
}

// Close ends Accept; the connection stays open.
func (o *once) Close() error {
	o.endedOnce.Do(func() { close(o.ended) })
	return nil
}

// Addr returns the address of this end.
func (o *once) Addr() net.Addr { return o.LocalAddr() }
