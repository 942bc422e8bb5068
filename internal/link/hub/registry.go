package hub

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	"github.com/katbox/katbox/internal/model/api"
)

// Config is what a Registry needs. All fields without the word "may" are required.
type Config struct {
	// Reviewer says whose a token is.
	Reviewer Reviewer
	// Tokens may be nil: then the Reviewer is asked about each token.
	Tokens Tokens
	// Expected knows the pods of the daemons, from when Known is closed. Known may be nil: then Tokens do not wait for that.
	Expected Expected
	Known    <-chan struct{}
	// Owners answers what nodes ask. Only the gateway has it.
	Owners Owners
	// Uploads may be nil: then nothing is archived. Only a gateway has it.
	Uploads Uploads
	// Replicas may be nil: then this replica knows of no other one, and nodes connect to each. Only a gateway has it.
	Replicas Replicas
	// Pools learns which pools nodes have. Only the controller has it, and no Owners and Hash.
	Pools Pools
	// Joined may be nil. It is called with each node that connects, and must not block.
	Joined func(node string)
	// Namespace and ServiceAccount are those of the daemons' pods.
	Namespace, ServiceAccount string
	// Hash is how the name of a volume tells its node. Only the gateway has it.
	Hash func(node string) uint32
	// Metrics may be nil.
	Metrics Metrics
	// Log may be the zero Logger.
	Log logr.Logger
}

// Expected knows which nodes run a daemon. [Pods] is one.
type Expected interface {
	// Pod returns the daemon's pod with that UID, if it is known.
	Pod(uid string) (Pod, bool)
	// Read asks the API server for the pod with that name; ErrNoPod if there is none.
	Read(ctx context.Context, name string) (Pod, error)
	// Nodes returns since when each node should run a daemon. It is false until this is known.
	Nodes() (map[string]time.Time, bool)
	// Expects reports whether the node should run a daemon, or this is not known yet.
	Expects(node string) bool
}

// Owners says whose volumes are.
type Owners interface {
	// Ask answers what the node asked, as far as the answers are known when ctx ends.
	Ask(ctx context.Context, node string, asks []api.OwnerAsk) []api.OwnerAnswer
}

// Metrics count connections.
type Metrics interface {
	// ConnectionAsked counts a node that asked for a connection, by what came of it.
	ConnectionAsked(outcome string)
	// TokenReviewed counts a question to the API server about a token, by what came of it.
	TokenReviewed(outcome string)
	// TokenRead counts a token that was accepted without such a question.
	TokenRead()
}

// What comes of a question.
const (
	Accepted = "accepted"
	Refused  = "refused"
	Busy     = "busy"
	Failed   = "failed"
)

// uncounted counts nothing.
type uncounted struct{}

func (uncounted) ConnectionAsked(string) {}
func (uncounted) TokenReviewed(string)   {}
func (uncounted) TokenRead()             {}

// Registry keeps the connections of all nodes. It is the http.Handler of the port that nodes
// connect to.
type Registry struct {
	Config
	// id tells this replica from others.
	id      string
	limits  limits
	started time.Time
	// reviews bounds how many tokens are reviewed a second, reviewing how many at once.
	reviews   *rate.Limiter
	reviewing chan struct{}
	queue     queue
	account   account
	refusals  *rate.Limiter // of lines in the log
	transport *http.Transport

	// ctx ends when the registry is closed.
	ctx   context.Context
	close context.CancelFunc

	mu    sync.RWMutex
	nodes map[string]*node
	// telling is held while Pools is told; it guards the sessions of all nodes.
	telling sync.Mutex
}

// limits are constants that tests shorten.
type limits struct {
	// silent and asking bound the connections that have not been upgraded, those that have sent no request
	// and the others: 5,000 nodes that come back at once, and not many more, so that a client without a token
	// cannot take the memory of others. Each takes some 30 KiB.
	silent, asking int
	// review bounds one TokenReview and one reading of a pod, wait the time before them.
	review, wait time.Duration
	// silence is how long a connection may live without a summary.
	silence time.Duration
	// drain is how long what runs on an older connection may go on.
	drain time.Duration
	// skip is how long a node is not asked that failed twice.
	skip time.Duration
	// answer bounds how long answers about owners take, from the API server to the node.
	answer time.Duration
}

const (
	// reviewsPerSecond bounds TokenReviews. Where the keys are of no use, 5,000 nodes come back within 30 seconds with 170.
	reviewsPerSecond = 200
	reviewsBurst     = 20
	reviewsAtOnce    = 32
)

// errStopped: the program ends.
var errStopped = errors.New("this replica stops")

// New returns a registry without connections. Its server is that of [Registry.Server].
func New(c Config) (*Registry, error) {
	for name, missing := range map[string]bool{
		"Reviewer": c.Reviewer == nil, "Expected": c.Expected == nil,
		"Owners or Pools": (c.Owners == nil) == (c.Pools == nil), "Hash": (c.Hash == nil) != (c.Pools != nil),
		"Namespace": c.Namespace == "", "ServiceAccount": c.ServiceAccount == "",
	} {
		if missing {
			return nil, fmt.Errorf("hub: Config.%s is missing", name)
		}
	}
	if c.Hash == nil {
		c.Hash = func(string) uint32 { return 0 }
	}
	if c.Metrics == nil {
		c.Metrics = uncounted{}
	}
	r := &Registry{
		Config: c, id: rand.Text(), started: time.Now(), nodes: map[string]*node{}, transport: newTransport(),
		reviews: rate.NewLimiter(reviewsPerSecond, reviewsBurst), reviewing: make(chan struct{}, reviewsAtOnce),
		account:  account{turn: make(chan struct{}, 1), reviews: rate.NewLimiter(accountsPerSecond, accountsPerSecond)},
		refusals: rate.NewLimiter(1, 20),
		limits: limits{
			silent: 2000, asking: 5000,
			review: 10 * time.Second, wait: 5 * time.Second, silence: 45 * time.Second,
			drain: time.Hour, skip: 10 * time.Second, answer: 30 * time.Second,
		},
	}
	r.ctx, r.close = context.WithCancel(context.Background())
	return r, nil
}

// Close closes all connections and refuses new ones.
func (r *Registry) Close() {
	r.close()
	for _, n := range r.all() {
		n.closeAll(errStopped)
	}
}

// PodGone closes the connections of a pod that does not exist any more. Pods calls it.
func (r *Registry) PodGone(p Pod) {
	if n := r.find(p.Node); n != nil {
		n.closePod(p.UID)
		r.forget(n)
	}
}

// all returns the nodes that are connected or have been.
func (r *Registry) all() []*node {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*node, 0, len(r.nodes))
	for _, n := range r.nodes {
		all = append(all, n)
	}
	return all
}

// find returns a node that is connected or has been; else nil.
func (r *Registry) find(name string) *node {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.nodes[name]
}

// register adds a connection to its node.
func (r *Registry) register(c *connection) error {
	r.mu.Lock()
	n := r.nodes[c.name]
	if n == nil {
		n = newNode(r, c.name)
		r.nodes[c.name] = n
	}
	// Under the lock, so that the node is not forgotten in between.
	c.node = n
	surplus := n.add(c)
	r.mu.Unlock()
	for _, old := range surplus {
		old.end(errReplaced)
	}
	if r.ctx.Err() != nil {
		c.end(errStopped)
		return errStopped
	}
	return nil
}

// forget removes a node that has no connection and should have none.
func (r *Registry) forget(n *node) {
	if r.Expected.Expects(n.name) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes[n.name] == n && n.empty() {
		delete(r.nodes, n.name)
	}
}

// dialled is the key of a context's connection; see newTransport.
type dialled struct{}

const (
	// mostHeader bounds the headers of a node's answer, and of its request to connect.
	mostHeader = 64 << 10
	// streamWindow and connWindow are how much a node may send that was not read yet, on a stream
	// and on a connection. A stream moves no more than its window in a round trip. With the 32 streams
	// that a node allows, slow readers of all of them leave half a MiB for lists and summaries; the 256
	// streams of a gateway keep 128 MiB at most.
	streamWindow = 512 << 10
	connWindow   = 32*streamWindow + 512<<10
	// frame is the largest frame that a node may send: a connection keeps room for the largest that came, so 5,000
	// nodes that have sent files take 160 MiB. With the smallest that HTTP/2 allows, half of it, a GiB took 3.6
	// instead of 2.4 seconds of CPU on both sides.
	frame = 32 << 10
	// writeLimit is how long a node may read nothing while something is sent to it.
	writeLimit = 10 * time.Second
)

// newTransport returns what makes an HTTP/2 client of a connection. The connection is in the context.
func newTransport() *http.Transport {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return ctx.Value(dialled{}).(net.Conn), nil
		},
		// A node must not have the gateway unpack anything.
		DisableCompression:     true,
		MaxResponseHeaderBytes: mostHeader,
		Protocols:              new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connWindow,
			MaxReadFrameSize: frame, WriteByteTimeout: writeLimit,
			// Headers repeat too rarely to keep tables of them.
			MaxDecoderHeaderTableSize: 1, MaxEncoderHeaderTableSize: 1,
		},
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}
