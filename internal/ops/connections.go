package ops

import (
	"container/list"
	"net"
	"sync"
)

// maxConnections is far more than the kubelet and a few servers of Prometheus have
// open.
const maxConnections = 256

// latest bounds the connections that are open: anybody in the cluster may connect,
// and each costs memory. Whoever comes last is served and the oldest one has to go,
// so that the kubelet's probe gets through a crowd.
type latest struct {
	net.Listener
	most int

	mu   sync.Mutex
	open list.List
}

// Accept waits for the next connection.
func (l *latest) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: accepted, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.place = l.open.PushBack(c)
	if l.open.Len() > l.most {
		oldest := l.open.Remove(l.open.Front()).(*connection)
		_ = oldest.Conn.Close() // its server reads on, sees that, and closes it again
	}
	return c, nil
}

// connection is one of those that are open.
type connection struct {
	net.Conn
	of    *latest
	place *list.Element
}

// Close ends the connection.
func (c *connection) Close() error {
	c.of.mu.Lock()
	c.of.open.Remove(c.place) // nothing, when it had to go
	c.of.mu.Unlock()
	return c.Conn.Close()
}
