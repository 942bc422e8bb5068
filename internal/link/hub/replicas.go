package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// Replicas are the other replicas of a gateway. A node connects to some of the replicas alone: what it has, the others ask
// for there.
type Replicas interface {
	// ServeHTTP answers what another replica asks, and Verify lets no one else in: it is called with each connection of a client
	// that speaks [ReplicaProtocol].
	http.Handler
	Verify(tls.ConnectionState) error
	// Look asks the other replicas which nodes are connected to them, and what these hold of a namespace, as [Registry.Each]
	// says it. Nodes that hold nothing of it have no holdings. It waits one
	// and a half seconds for the answers, and says nothing of a replica that does not answer.
	Look(ctx context.Context, namespace string) map[string]Elsewhere
	// Ask sends a request to a node over a connection of another replica. Its error wraps [ErrAway] if none has one; then nothing was
	// sent. It closes the request's body.
	Ask(node string, request *http.Request) (*http.Response, error)
	// Has reports whether a node was connected to another replica when that was asked last, and whether it answers there.
	Has(node string) (connected, answers bool)
	// Names are the nodes that are.
	Names() map[string]bool
	// Forward reports whether all other replicas ask one another, too: then a node needs no connection to each.
	Forward() bool
}

// AnyNamespace stands for a namespace where it does not matter what nodes hold. No namespace has that name.
const AnyNamespace = "any namespace"

// Elsewhere is a node that is connected to another replica.
type Elsewhere struct {
	Holdings []api.Holding
	// Skip is as in [Held].
	Skip string
}

// Fleet is what is known of all nodes at one moment, those among them that are connected to other replicas alone.
type Fleet struct {
	Held    []Held
	Missing []Missing
	// Count is how many nodes there are, the missing ones among them.
	Count int
}

// Look returns all nodes, of which Held are those that may hold volumes of the namespace, as Each says it. With [AnyNamespace] these
// are all that are connected.
func (r *Registry) Look(ctx context.Context, namespace string) (f Fleet) {
	// What is missing comes first: a node that connects in between is asked, and named, too.
	f.Missing, f.Count = r.missing()
	f.Held = r.Each(namespace)
	if r.Replicas != nil && f.lacks() {
		r.join(&f, r.Replicas.Look(ctx, namespace))
	}
	f.Held = slices.DeleteFunc(f.Held, func(h Held) bool { return len(h.Holdings) == 0 })
	return f
}

// join adds what other replicas say. What a node holds by their account counts, too: this one may be older.
func (r *Registry) join(f *Fleet, others map[string]Elsewhere) {
	f.Missing = slices.DeleteFunc(f.Missing, func(m Missing) bool { _, there := others[m.Node]; return there })
	places := make(map[string]int, len(f.Held))
	for i, h := range f.Held {
		places[h.Conn.Node()] = i
	}
	for node, o := range others {
		i, here := places[node]
		switch {
		case !r.Expected.Expects(node): // that replica does not know yet that its daemon is gone
		case here:
			h := &f.Held[i]
			h.Holdings = Union(h.Holdings, o.Holdings)
			if h.Skip != "" && o.Skip == "" {
				h.Conn, h.Skip = newNode(r, node), "" // not over the connection that it does not answer
			}
		case len(o.Holdings) > 0:
			f.Held = append(f.Held, Held{Conn: r.reach(node), Holdings: o.Holdings, Skip: o.Skip})
		}
	}
}

// lacks reports whether a node is not connected here, or does not answer here: only then another replica may help, and its answer is as
// long as there are nodes. With two replicas that is rare.
func (f *Fleet) lacks() bool {
	return len(f.Missing) > 0 || slices.ContainsFunc(f.Held, func(h Held) bool { return h.Skip != "" })
}

// Named returns the nodes with that hash, connected to any replica or to none.
func (r *Registry) Named(ctx context.Context, hash uint32) []NodeState {
	states := r.ByHash(hash)
	away := func() (some bool) {
		for i, s := range states {
			if s.Conn == nil && r.Elsewhere(s.Node) {
				states[i] = NodeState{Node: s.Node, Conn: r.reach(s.Node)}
			}
			some = some || states[i].Conn == nil
		}
		return some
	}
	if away() && r.Replicas != nil {
		r.Replicas.Look(ctx, AnyNamespace) // some may have connected just now
		away()
	}
	return states
}

// Elsewhere reports whether a node is connected to another replica, as far as is known without asking.
func (r *Registry) Elsewhere(node string) bool {
	if r.Replicas == nil {
		return false
	}
	connected, _ := r.Replicas.Has(node)
	return connected
}

// reach returns a node that is connected to any replica, or was.
func (r *Registry) reach(name string) Conn {
	if n := r.find(name); n != nil {
		return n
	}
	return newNode(r, name)
}

// Here sends a request to a node over a connection of this replica alone. Its error wraps [ErrAway] if there is none, and while
// the API server is not heard: it is not known then whether the daemon that holds the connection is still one.
func (r *Registry) Here(node string, request *http.Request) (*http.Response, error) {
	pods, _ := r.Expected.Pod("") // none has no UID, and all are as new
	n := r.find(node)
	if n == nil || !pods.Heard.IsZero() && time.Since(pods.Heard) >= believed {
		return nil, fmt.Errorf("%w: %s", ErrAway, node)
	}
	return n.here(request)
}

// ID tells this replica from others.
func (r *Registry) ID() string { return r.id }

// elsewhere sends a request that was not answered here over a connection of another replica: one that changes something
// only if it was not sent.
func (n *node) elsewhere(request *http.Request, failed error) (*http.Response, error) {
	others := n.registry.Replicas
	if others == nil || request.Context().Err() != nil || !errors.Is(failed, ErrAway) && !reads(request) {
		return nil, failed
	}
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, errors.Join(failed, err)
		}
		request = request.Clone(request.Context())
		request.Body = body
	}
	response, err := others.Ask(n.name, request)
	if errors.Is(err, ErrAway) {
		return nil, failed
	}
	return response, err
}
