package local

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/katbox/katbox/soak/internal/link"
)

// Controller takes the daemon's connections and asks on the newest.
type Controller struct {
	*link.Listener

	mu   sync.Mutex
	node *http.ClientConn
	came chan struct{} // closed when a node comes
}

// Listen starts a controller. It writes what a daemon needs to connect into a directory.
func Listen(dir string) (*Controller, error) {
	c := &Controller{came: make(chan struct{})}
	var err error
	c.Listener, err = link.Listen(dir, c.hear)
	return c, err
}

// Flags are those of a daemon that connects.
func (c *Controller) Flags() []string { return c.Listener.Flags("controller") }

// hear uses a connection until it has ended. What a node says of its pools unasked is of no use here, but a controller listens.
func (c *Controller) hear(node *http.ClientConn, summaries io.Reader) {
	c.become(node)
	_, _ = io.Copy(io.Discard, summaries) // how it ends is all the same
	c.lose(node)
}

// become makes a connection the one that is used.
func (c *Controller) become(node *http.ClientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.node = node
	close(c.came)
	c.came = make(chan struct{})
}

// lose notes that a connection has ended.
func (c *Controller) lose(node *http.ClientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node == node {
		c.node = nil
	}
}

// connection waits for a node and returns its connection.
func (c *Controller) connection(ctx context.Context) (*http.ClientConn, error) {
	for {
		c.mu.Lock()
		node, came := c.node, c.came
		c.mu.Unlock()
		if node != nil {
			return node, nil
		}
		select {
		case <-came:
		case <-ctx.Done():
			return nil, fmt.Errorf("no node is connected: %w", context.Cause(ctx))
		}
	}
}
