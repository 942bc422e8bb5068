package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// mostAnswer bounds an answer in JSON: a page of 5,000 volumes, of which each takes some 600 bytes.
const mostAnswer = 4 << 20

// mostConnections is how many connections a node may have.
const mostConnections = 2

// node is a node that is connected or has been. It sends requests over its newest connection.
type node struct {
	registry *Registry
	name     string
	hash     uint32
	client   *api.Client

	mu sync.Mutex
	// connections, the newest last.
	connections []*connection
	// heard is the one whose first summary came last.
	heard *connection
	// lost is when the last connection ended.
	lost time.Time
	// session and version are what Pools was told last; Registry.telling guards them.
	session *session
	version string
	// failures counts requests in a row that were not answered, failed is when the last one was.
	failures int
	failed   time.Time
}

func newNode(r *Registry, name string) *node {
	n := &node{registry: r, name: name, hash: r.Hash(name)}
	n.client = api.NewClient("node "+name, n).Bounded(mostAnswer)
	return n
}

// Node returns the node's name.
func (n *node) Node() string { return n.name }

// Client returns a client that asks the node over its newest connection.
func (n *node) Client() *api.Client { return n.client }

// add makes c the newest connection, and returns those that are too many now.
func (n *node) add(c *connection) (surplus []*connection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connections = append(n.connections, c)
	n.failures = 0
	for len(n.connections) > mostConnections {
		surplus = append(surplus, n.connections[0])
		n.drop(n.connections[0])
	}
	return surplus
}

// remove forgets a connection that has ended. It reports whether the node has none that is used.
func (n *node) remove(c *connection) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(c)
	return n.newest() == nil
}

// drop is remove for who holds the lock.
func (n *node) drop(c *connection) {
	i := slices.Index(n.connections, c)
	if i < 0 {
		return
	}
	n.connections = slices.Delete(n.connections, i, i+1)
	if n.heard == c {
		n.heard = nil
	}
	if n.newest() == nil {
		n.lost = time.Now()
	}
}

// newest returns the connection for new requests; nil if there is none. The caller holds the lock.
func (n *node) newest() *connection {
	for _, c := range slices.Backward(n.connections) {
		if !c.retired {
			return c
		}
	}
	return nil
}

// current returns the connection for new requests; nil if there is none.
func (n *node) current() *connection {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.newest()
}

// has says that a connection has told all that the node holds. It returns the older ones, which are
// not used any more, and false if c itself is one of them.
func (n *node) has(c *connection) (older []*connection, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.Index(n.connections, c)
	if i < 0 || c.retired {
		return nil, false
	}
	n.heard = c
	for _, old := range n.connections[:i] {
		if !old.retired {
			old.retired = true
			older = append(older, old)
		}
	}
	return older, true
}

// isHeard reports whether the connection is the one whose first summary came last, and has not ended.
func (n *node) isHeard(c *connection) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.heard == c
}

func (n *node) closeAll(why error) {
	n.mu.Lock()
	all := slices.Clone(n.connections)
	n.mu.Unlock()
	for _, c := range all {
		c.end(why)
	}
}

// closePod closes the connections of a pod.
func (n *node) closePod(uid string) {
	n.mu.Lock()
	all := slices.Clone(n.connections)
	n.mu.Unlock()
	for _, c := range all {
		if c.podUID == uid {
			c.end(errPodGone)
		}
	}
}

// empty reports whether the node has no connection at all.
func (n *node) empty() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.connections) == 0
}

// look is what is known of a node at one moment.
type look struct {
	connected bool
	// skipped since failed, because requests were not answered.
	skipped      bool
	failed, lost time.Time
	// heard is nil while it is not known what the node holds.
	heard *connection
}

func (n *node) look() look {
	n.mu.Lock()
	defer n.mu.Unlock()
	return look{
		connected: n.newest() != nil, heard: n.heard, lost: n.lost, failed: n.failed,
		skipped: n.failures >= mostFailures && time.Since(n.failed) < n.registry.limits.skip,
	}
}

// mostFailures is how many requests in a row may fail before a node is skipped.
const mostFailures = 2

// ErrAway: there is no connection to the node, so that nothing was sent.
var ErrAway = errors.New("the node is not connected")

// RoundTrip sends a request over the newest connection, or where that is not possible over one of another replica.
func (n *node) RoundTrip(request *http.Request) (*http.Response, error) {
	if size := headerSize(request); size > mostSent {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, fmt.Errorf("the request is too long: its URL and headers have %d bytes, and may have %d", size, mostSent)
	}
	response, err := n.here(request)
	if err == nil {
		return response, nil
	}
	return n.elsewhere(request, err)
}

// reads reports whether a request may be sent again: it changes nothing.
func reads(request *http.Request) bool {
	return request.Method == http.MethodGet || request.Method == http.MethodHead
}

// here sends a request over the newest connection. If that ends meanwhile, and there is a newer
// one, a request to read is sent again.
func (n *node) here(request *http.Request) (*http.Response, error) {
	began := time.Now()
	c := n.current()
	response, err := n.send(c, request)
	if err != nil && reads(request) {
		if newer := n.current(); newer != nil && newer != c {
			response, err = n.send(newer, request)
		}
	}
	if err != nil {
		n.count(request, began, err)
		return nil, err
	}
	response.Body = &countedBody{ReadCloser: response.Body, node: n, request: request, began: began}
	return response, nil
}

// mostSent bounds the URL and the headers of a request. Daemons take 64 KiB, and what is longer would
// look as if none of them answered.
const mostSent = 48 << 10

// headerSize is how long the URL and the headers of a request are, as HTTP/2 counts them.
func headerSize(request *http.Request) int {
	const perField = 32
	size := len(request.URL.RequestURI()) + perField
	for name, values := range request.Header {
		for _, value := range values {
			size += len(name) + len(value) + perField
		}
	}
	return size
}

func (n *node) send(c *connection, request *http.Request) (*http.Response, error) {
	if c == nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, fmt.Errorf("%w: %s", ErrAway, n.name)
	}
	return c.client.RoundTrip(request)
}

// count counts a request that was answered, or was not: in time, or at all. One that its sender gave
// up says nothing about the node. Nor does one for a volume that takes too long: the volume may be
// large, and its reader must not take the node away from the lists of others. Requests that failed at
// the same time say no more than one.
func (n *node) count(request *http.Request, began time.Time, err error) {
	ended := request.Context().Err()
	if err != nil && (errors.Is(ended, context.Canceled) || ended != nil && strings.HasPrefix(request.URL.Path, api.VolumesPath+"/")) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil:
		n.failures = 0
	case n.failures == 0 || !began.Before(n.failed):
		n.failures++
		n.failed = time.Now()
	}
}

// countedBody counts an answer that came to its end, or did not in time. The header alone is no answer.
type countedBody struct {
	io.ReadCloser
	node    *node
	request *http.Request
	began   time.Time // when the request was sent
	late    bool
}

// Read reads from the answer.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.late && errors.Is(b.request.Context().Err(), context.DeadlineExceeded) {
		b.late = true
		b.node.count(b.request, b.began, err)
	}
	return n, err
}

// Close ends the answer.
func (b *countedBody) Close() error {
	if !b.late && b.request.Context().Err() == nil {
		b.node.count(b.request, b.began, nil)
	}
	return b.ReadCloser.Close()
}
