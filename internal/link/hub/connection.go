package hub

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/api"
)

// Why a connection ended.
var (
	errSilent   = errors.New("the node sent no summary for too long")
	errReplaced = errors.New("the node has made newer connections")
	errPodGone  = errors.New("the daemon's pod does not exist any more")
	errDrained  = errors.New("a newer connection is used, and nothing runs on this one")
	errTooLong  = errors.New("a newer connection is used, and what ran on this one took too long")
	errClosed   = errors.New("the connection was closed")
	// errProtocol: the node sent what no daemon sends.
	errProtocol = errors.New("the node breaks the protocol")
)

// connection is one that a node opened.
type connection struct {
	registry *Registry
	name     string // the node's
	podUID   string
	version  string // of its daemon
	ends     bool   // it keeps how pods end
	client   *http.ClientConn
	// ctx ends with the connection. What ends hearing ends the stream of summaries alone.
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  atomic.Bool

	node *node
	// retired: a newer one is used for new requests. The node's lock guards it.
	retired bool

	hearing  context.Context
	hush     context.CancelFunc
	holdings holdings
	// waiting is what the node has to archive; nil until it has said.
	waiting atomic.Pointer[Waiting]

	mu sync.Mutex
	// limit closes the connection if no summary comes in time; once it is retired, when its time is up.
	limit *time.Timer
	// asks wait for answers. asking: a goroutine answers them.
	asks   []api.OwnerAsk
	asking bool
	// uploads wait for URLs. signing: a goroutine answers them.
	uploads []api.UploadAsk
	signing bool
}

// plain hides that a connection has TLS, so that the HTTP/2 client keeps no copy of its state.
type plain struct{ net.Conn }

// open makes a client of a connection that was upgraded.
func (r *Registry) open(conn net.Conn, name, podUID, version string) (*connection, error) {
	ctx := context.WithValue(r.ctx, dialled{}, net.Conn(plain{conn}))
	client, err := r.transport.NewClientConn(ctx, "http", net.JoinHostPort("node", "80"))
	if err != nil {
		return nil, err
	}
	c := &connection{registry: r, name: name, podUID: podUID, version: version, client: client}
	c.ctx, c.cancel = context.WithCancelCause(r.ctx)
	c.hearing, c.hush = context.WithCancel(c.ctx)
	return c, nil
}

// start reads summaries until the connection ends.
func (c *connection) start() {
	c.registry.Metrics.ConnectionAsked(Accepted)
	c.registry.Log.V(1).Info("a node has connected", logkeys.Node, c.name)
	c.allow(c.registry.limits.silence, errSilent)
	c.client.SetStateHook(func(client *http.ClientConn) { c.changed(client) })
	if c.registry.Joined != nil {
		c.registry.Joined(c.name)
	}
	go func() {
		err := c.hear()
		if c.hearing.Err() == nil {
			c.end(err)
		}
	}()
}

// changed is called when a request has ended, or the connection.
func (c *connection) changed(client *http.ClientConn) {
	if client.Err() != nil {
		c.end(errClosed)
		return
	}
	c.endIfDrained()
}

// endIfDrained ends a retired connection when nothing runs on it.
func (c *connection) endIfDrained() {
	c.node.mu.Lock()
	drained := c.retired && c.client.InFlight() == 0
	c.node.mu.Unlock()
	if drained {
		c.end(errDrained)
	}
}

// retire stops using a connection. What runs on it may go on for a while.
func (c *connection) retire() {
	c.hush()
	c.allow(c.registry.limits.drain, errTooLong)
	c.endIfDrained()
}

// allow lets the connection live for that long from now on.
func (c *connection) allow(d time.Duration, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limit != nil {
		c.limit.Stop()
	}
	if !c.ended.Load() {
		c.limit = time.AfterFunc(d, func() { c.end(why) })
	}
}

// alive says that the node has been heard.
func (c *connection) alive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Once it is retired the limit is another one.
	if c.hearing.Err() == nil {
		c.limit.Reset(c.registry.limits.silence)
	}
}

// end closes the connection, once. It may be called by what it closes.
func (c *connection) end(why error) {
	if c.ended.Swap(true) {
		return
	}
	c.cancel(why)
	last := c.node.remove(c)
	c.mu.Lock()
	if c.limit != nil {
		c.limit.Stop()
	}
	c.mu.Unlock()
	_ = c.client.Close()
	log := c.registry.Log.WithValues(logkeys.Node, c.name, logkeys.Cause, why.Error())
	switch {
	case errors.Is(why, errProtocol):
		log.Info("closed the connection of a node that breaks the protocol; is its daemon another version, or not a daemon?")
	case last && !errors.Is(why, errStopped) && !c.registry.Elsewhere(c.name):
		log.Info("a node is not connected any more")
	default:
		log.V(1).Info("a connection of a node has ended")
	}
	if last {
		c.registry.tellAway(c.node)
		c.registry.forget(c.node)
	}
}
