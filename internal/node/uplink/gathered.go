package uplink

import (
	"net"
	"sync"
)

// gathered is a connection that TLS writes records to. A frame of HTTP/2 is longer than a record, and TLS writes
// each record by itself: the kernel would be called three times for a frame of 32 KiB.
type gathered struct {
	net.Conn
	mu sync.Mutex
	// holding says that what is written waits in held.
	holding bool
	held    []byte
}

// Write sends, or holds what is to be sent.
func (g *gathered) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.holding {
		return g.Conn.Write(p)
	}
	g.held = append(g.held, p...)
	return len(p), nil
}

// together sends at once what write writes. One goroutine at a time may call it.
func (g *gathered) together(write func() (int, error)) (int, error) {
	g.mu.Lock()
	g.holding = true
	g.mu.Unlock()
	n, err := write()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holding = false
	if len(g.held) > 0 {
		if _, failed := g.Conn.Write(g.held); failed != nil && err == nil {
			n, err = 0, failed
		}
		g.held = g.held[:0]
	}
	return n, err
}
