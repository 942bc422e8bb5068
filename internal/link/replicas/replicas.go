package replicas

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// lookInterval is the time between two looks at the others, beside those for each list.
	lookInterval = 5 * time.Second
	// lookLimit is how long another replica may take to say which nodes it has.
	lookLimit = 1500 * time.Millisecond
	// dialLimit bounds an attempt to connect to one.
	dialLimit = 2 * time.Second
	// lookupLimit bounds an attempt to resolve the name.
	lookupLimit = 3 * time.Second
	// mostReplicas is how many there may be: 32 have 10,000 connections each of 160,000 nodes.
	mostReplicas = 32
)

// What the log says.
var (
	errUnfound = errors.New("cannot find the other replicas; trying again")
	errSilent  = errors.New("another replica does not answer; what is connected to it alone is missing until it does")
)

// Local is this replica's own part. [hub.Registry] is one.
type Local interface {
	ID() string
	Each(namespace string) []hub.Held
	Here(node string, request *http.Request) (*http.Response, error)
}

// Config is what Replicas need. All fields but Log are required.
type Config struct {
	// Local is set before the first request.
	Local Local
	// Find returns where all replicas listen for nodes, this one among them.
	Find func(ctx context.Context) ([]netip.AddrPort, error)
	// Name is that of the certificate. Certificate returns it, and Roots the CAs that sign it.
	Name        string
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Roots       func() *x509.CertPool
	Log         logr.Logger
}

// Replicas are the other replicas. Its methods may be called from several goroutines.
type Replicas struct {
	cfg       Config
	transport *http.Transport
	relay     http.Handler
	// stopping ends with Stop, and what is passed on with it.
	stopping context.Context
	stop     context.CancelFunc

	mu    sync.RWMutex
	peers map[netip.AddrPort]*peer
	// found: they could be found when that was tried last; unfound is why not, as the log has said it.
	found   bool
	unfound string
}

// peer is a replica at one address. Replicas.mu guards it.
type peer struct {
	address netip.AddrPort
	// id is which replica answers there; empty if none ever has.
	id string
	// nodes are those that were connected to it when it answered last: true of one that answers it. It is nil if it has not
	// answered, or not twice in a row.
	nodes map[string]bool
	// older: it is of a version that does not ask others.
	older bool
	// failures counts in a row how often it has not answered; failed is why, as the log has said it.
	failures int
	failed   string
}

// mostFailures is how often in a row a replica does not answer before it is one that is away: lists do not wait for it.
const mostFailures = 2

// New returns Replicas that know of none until Run.
func New(c Config) (*Replicas, error) {
	for name, missing := range map[string]bool{
		"Find": c.Find == nil, "Name": c.Name == "", "Certificate": c.Certificate == nil, "Roots": c.Roots == nil,
	} {
		if missing {
			return nil, fmt.Errorf("replicas: Config.%s is missing", name)
		}
	}
	r := &Replicas{cfg: c, peers: map[netip.AddrPort]*peer{}}
	r.stopping, r.stop = context.WithCancel(context.Background())
	r.transport, r.relay = r.newTransport(), r.newRelay()
	return r, nil
}

// Of sets whose replicas these are. It is called once, before the first request.
func (r *Replicas) Of(l Local) { r.cfg.Local = l }

// Begin looks at the others, for the first time and once this replica listens: before, Forward is false.
func (r *Replicas) Begin(ctx context.Context) {
	r.find(ctx)
	r.lookAtAll(ctx)
}

// Run looks at the others again and again, until ctx ends.
func (r *Replicas) Run(ctx context.Context) {
	for ctx.Err() == nil {
		r.Begin(ctx)
		_ = retry.Pause(ctx, retry.Around(lookInterval))
	}
	r.transport.CloseIdleConnections()
}

// Stop breaks what is passed on, and passes on no more: who asks goes on at another replica.
func (r *Replicas) Stop() { r.stop() }

// find keeps the addresses of the others. Where they cannot be found it keeps those that it has.
func (r *Replicas) find(ctx context.Context) {
	looking, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	found, err := r.cfg.Find(looking)
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = err == nil
	why := ""
	if err != nil {
		why = volume.OneLine(err)
	}
	if why != r.unfound && why != "" {
		r.cfg.Log.Info(errUnfound.Error(), logkeys.Cause, why)
	}
	if r.unfound = why; err != nil {
		return
	}
	slices.SortFunc(found, netip.AddrPort.Compare)
	found = slices.Compact(found)
	found = found[:min(len(found), mostReplicas)]
	maps.DeleteFunc(r.peers, func(a netip.AddrPort, _ *peer) bool { return !slices.Contains(found, a) })
	for _, a := range found {
		if r.peers[a] == nil {
			r.peers[a] = &peer{address: a}
		}
	}
}

// others returns the addresses at which another replica may be, in order; one for each replica.
func (r *Replicas) others() (all []netip.AddrPort) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	seen := map[string]bool{r.cfg.Local.ID(): true}
	for _, a := range slices.SortedFunc(maps.Keys(r.peers), netip.AddrPort.Compare) {
		p := r.peers[a]
		if p.id != "" && seen[p.id] {
			continue
		}
		if p.id != "" {
			seen[p.id] = true
		}
		all = append(all, a)
	}
	return all
}

// note keeps which replica has answered at an address, and which nodes it has.
func (r *Replicas) note(a netip.AddrPort, id string, nodes map[string]hub.Elsewhere) {
	answers := make(map[string]bool, len(nodes))
	for node, one := range nodes {
		answers[node] = one.Skip == ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.peers[a]
	if p == nil {
		return
	}
	p.id, p.older, p.failures, p.failed, p.nodes = id, false, 0, "", answers
}

// noteFailure keeps that an address has not answered. Once is no news: a replica is starting there, or has just ended.
func (r *Replicas) noteFailure(a netip.AddrPort, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.peers[a]
	if p == nil {
		return
	}
	if errors.Is(err, errOlder) {
		p.older, p.nodes = true, nil
		return
	}
	if p.failures++; p.failures < mostFailures {
		return
	}
	p.nodes = nil
	if why := volume.OneLine(err); why != p.failed {
		p.failed = why
		r.cfg.Log.Info(errSilent.Error(), "address", a.String(), logkeys.Cause, why)
	}
}

// isAway reports whether a replica is not asked for a list.
func (r *Replicas) isAway(a netip.AddrPort) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	p := r.peers[a]
	return p == nil || p.older || p.failures >= mostFailures
}

// Forward implements [hub.Replicas]: all others were found, and each has answered. Where one cannot be reached from the start, as with
// a NetworkPolicy that does not know of this, nodes connect to all.
func (r *Replicas) Forward() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, p := range r.peers {
		if p.older || p.id == "" {
			return false
		}
	}
	return r.found
}

// Count returns how many replicas there are, this one among them, as far as they answer.
func (r *Replicas) Count() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	ids := map[string]bool{r.cfg.Local.ID(): true}
	for _, p := range r.peers {
		if p.nodes != nil {
			ids[p.id] = true
		}
	}
	return len(ids)
}

// Has implements [hub.Replicas].
func (r *Replicas) Has(node string) (connected, answers bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, p := range r.peers {
		if well, there := p.nodes[node]; there && p.id != r.cfg.Local.ID() {
			connected, answers = true, answers || well
		}
	}
	return connected, answers
}

// Names implements [hub.Replicas].
func (r *Replicas) Names() map[string]bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	names := map[string]bool{}
	for _, p := range r.peers {
		if p.id == r.cfg.Local.ID() {
			continue
		}
		for node := range p.nodes {
			names[node] = true
		}
	}
	return names
}

// holders returns where a node may be asked for: first at the replicas that have it, and that it answers.
func (r *Replicas) holders(node string) []netip.AddrPort {
	all := r.others()
	r.mu.RLock()
	defer r.mu.RUnlock()
	const none = 3
	rank := func(a netip.AddrPort) int {
		p := r.peers[a]
		if p == nil || p.nodes == nil {
			return none
		}
		switch well, there := p.nodes[node]; {
		case well:
			return 0
		case there:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b netip.AddrPort) int { return cmp.Compare(rank(a), rank(b)) })
	return slices.DeleteFunc(all, func(a netip.AddrPort) bool { return rank(a) == none })
}

// Resolve returns a Find that looks up HOST:PORT, one or several with commas between.
func Resolve(targets []string) func(ctx context.Context) ([]netip.AddrPort, error) {
	resolver := net.Resolver{PreferGo: true} // then a lookup ends with its context
	return func(ctx context.Context) (all []netip.AddrPort, err error) {
		for _, target := range targets {
			host, text, err := net.SplitHostPort(target)
			if err != nil {
				return nil, err
			}
			port, err := resolver.LookupPort(ctx, "tcp", text)
			if err != nil {
				return nil, err
			}
			found, err := resolver.LookupNetIP(ctx, "ip", host)
			if err != nil {
				return nil, fmt.Errorf("resolve %s: %w; check that the Service exists", host, err)
			}
			for _, a := range found {
				all = append(all, netip.AddrPortFrom(a.Unmap(), uint16(port)))
			}
		}
		return all, nil
	}
}
