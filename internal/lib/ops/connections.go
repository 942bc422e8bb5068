package ops

import (
	"container/list"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// maxSilent is far more than the kubelet and a few Prometheus servers keep open.
	maxSilent = 256
	// maxAsking bounds the requests under way, which take up to 32 KiB each. An answer from memory
	// takes a few milliseconds: within them an address must send a thousand requests before an
	// older one is broken off.
	maxAsking = 1024
	// maxKept bounds the connections of clients that are known.
	maxKept = 64
)

// errTooMuch: a client that is not known sends too much.
var errTooMuch = errors.New("the client has sent too much before it was known")

// BoundedListener limits the open connections of an HTTP server: every pod of the cluster may connect. The
// newest connection is always accepted and another one closed for it, so the kubelet's probe gets
// through. The server's ConnState is [Changed].
//
// A connection that has sent something is never closed for a silent one. In each group the address
// with the most connections loses its oldest one, so a pod that floods the port loses its own. The
// addresses of one IPv6 network of 64 bits count as one: a client with one of them has all.
//
// It bounds connections from their first moment, below TLS. One that a handler hijacks counts no more. One that is given to [Keep]
// is bounded apart.
type BoundedListener struct {
	net.Listener
	// Dropped, where it is set, is called for each connection that is closed for another one. It must not block.
	Dropped func()
	// Most, where it is set, is how many bytes a client may send, those of TLS among them, before its connection is hijacked or kept.
	// Beyond them nothing more can be read.
	Most int64

	mu     sync.Mutex
	silent group // have sent nothing since their last answer
	asking group // have sent a request, or a part of one
	kept   group // are of clients that are known
}

// NewBoundedListener returns the connections that l accepts: at most silent ones that have sent nothing since
// their last answer, and asking ones that have sent a request.
func NewBoundedListener(l net.Listener, silent, asking int) *BoundedListener {
	return &BoundedListener{Listener: l, silent: newGroup(silent), asking: newGroup(asking), kept: newGroup(maxKept)}
}

// Accept waits for the next connection.
func (l *BoundedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: accepted, of: l, from: address(accepted), left: l.Most}
	c.free.Store(l.Most == 0)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(c)
	return c, nil
}

// add adds a silent connection. If that is one too many, another one is closed, unless it has sent
// something that the server has not read yet.
func (l *BoundedListener) add(c *connection) {
	l.silent.add(c)
	for l.silent.tooMany() {
		victim := l.silent.victim()
		if !victim.hasSent() {
			victim.drop()
			return
		}
		l.ask(victim)
	}
}

// ask adds a connection that has sent something.
func (l *BoundedListener) ask(c *connection) {
	c.in.remove(c)
	l.asking.add(c)
	if l.asking.tooMany() {
		l.asking.victim().drop()
	}
}

// Changed is the hook of an HTTP server whose connections are from a [BoundedListener]: it calls it when a
// request was read and when it was answered.
func Changed(conn net.Conn, state http.ConnState) {
	inCrowd(conn, func(l *BoundedListener, c *connection) {
		switch state {
		case http.StateActive:
			l.ask(c)
		case http.StateIdle:
			c.in.remove(c)
			l.add(c)
		case http.StateHijacked:
			c.in.remove(c)
			c.free.Store(true)
		}
	})
}

// Keep takes a connection out of the crowd: its client has proven who it is, and no other client may cost it its connection. Of those
// that are kept an old one is closed when there are more than 64.
func Keep(conn net.Conn) {
	inCrowd(conn, func(l *BoundedListener, c *connection) {
		c.in.remove(c)
		l.kept.add(c)
		c.free.Store(true)
		if l.kept.tooMany() {
			l.kept.victim().drop()
		}
	})
}

// inCrowd calls do with a connection that belongs to the crowd, and its listener, under the lock of that. It does nothing for one that
// was dropped or that is kept.
func inCrowd(conn net.Conn, do func(*BoundedListener, *connection)) {
	c := bounded(conn)
	if c == nil {
		return
	}
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.in != nil && c.in != &l.kept {
		do(l, c)
	}
}

// bounded returns the connection below TLS and whatever else, if a [BoundedListener] has accepted it.
func bounded(conn net.Conn) *connection {
	for {
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			c, _ := conn.(*connection)
			return c
		}
		conn = above.NetConn()
	}
}

// connection is an open connection.
type connection struct {
	net.Conn
	of   *BoundedListener
	from netip.Prefix
	// in is its group, nil when it is closed; place is its place there.
	in    *group
	place *list.Element
	// left is how much it may still send until it is free. Who reads uses it.
	left int64
	free atomic.Bool
}

// Read reads what the client has sent.
func (c *connection) Read(p []byte) (int, error) {
	if c.free.Load() {
		return c.Conn.Read(p)
	}
	if c.left <= 0 {
		return 0, errTooMuch
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// Close ends the connection.
func (c *connection) Close() error {
	c.of.mu.Lock()
	if c.in != nil {
		c.in.remove(c)
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// hasSent tells, without a wait, whether there is received data that the server has not read.
func (c *connection) hasSent() bool {
	conn, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	received := 0
	err = raw.Control(func(fd uintptr) {
		received, _, _ = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err == nil && received > 0
}

// drop closes a connection in favour of another one.
func (c *connection) drop() {
	c.in.remove(c)
	if c.of.Dropped != nil {
		c.of.Dropped()
	}
	_ = c.Conn.Close() // the server notices at its next read or write, and closes it again
}

// group contains connections, the oldest first.
type group struct {
	most  int
	byAge *list.List
	of    map[netip.Prefix]int // how many connections each address has
}

func newGroup(most int) group {
	return group{most: most, byAge: list.New(), of: map[netip.Prefix]int{}}
}

func (g *group) add(c *connection) {
	c.in, c.place = g, g.byAge.PushBack(c)
	g.of[c.from]++
}

func (g *group) tooMany() bool { return g.byAge.Len() > g.most }

// victim returns the oldest connection of the address that has the most.
func (g *group) victim() *connection {
	most := 0
	for _, number := range g.of {
		most = max(most, number)
	}
	for e := g.byAge.Front(); ; e = e.Next() {
		if c := e.Value.(*connection); g.of[c.from] == most {
			return c
		}
	}
}

func (g *group) remove(c *connection) {
	g.byAge.Remove(c.place)
	c.in, c.place = nil, nil
	if g.of[c.from]--; g.of[c.from] == 0 {
		delete(g.of, c.from)
	}
}

// address returns the client's address without the port, or the network that counts as one.
func address(c net.Conn) netip.Prefix {
	if from, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return sharedBy(from.AddrPort().Addr())
	}
	return netip.Prefix{}
}

// networkBits are those of an IPv6 network of one machine or pod at least.
const networkBits = 64

// sharedBy returns what counts as one with an address.
func sharedBy(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = networkBits
	}
	shared, _ := a.Prefix(bits) // it has as many bits
	return shared
}

// Source returns what counts as one client: an IPv4 address, or an IPv6 network of 64 bits. What is no address with a port
// is returned as it is.
func Source(remote string) string {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	if shared := sharedBy(from.Addr()); !shared.IsSingleIP() {
		return shared.String()
	}
	return from.Addr().Unmap().String()
}
