package nodes

import (
	"slices"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/api"
)

// Conn is a node that can be asked.
type Conn interface {
	// Node is the node's name, as its token says.
	Node() string
	// Client asks the node over the connection that is the newest at that moment. Answers in JSON are
	// bounded by 4 MiB.
	Client() *api.Client
}

// Held is what a connected node says that it holds.
type Held struct {
	Conn Conn
	// Known is false until the node's first summary has come. It may hold anything.
	Known bool
	// Holdings are those of the namespace that was asked for, several if there are volumes of earlier
	// namespaces of that name.
	Holdings []api.Holding
}

// Why a node is missing.
const (
	// NotConnected: there is no connection.
	NotConnected = "NotConnected"
	// NotAnswering: the node is connected but did not answer twice in a row. It is asked again after
	// ten seconds.
	NotAnswering = "NotAnswering"
)

// Missing is a node that should be there and cannot be asked.
type Missing struct {
	Node string
	// Since is when the connection ended or the node failed, or since when it is waited for.
	Since  time.Time
	Reason string
}

// NodeState is a node that is connected or should be.
type NodeState struct {
	Node string
	// Conn is nil if there is no connection. Since and Reason are then those of Missing.
	Conn   Conn
	Since  time.Time
	Reason string
}

// Counts are numbers of nodes.
type Counts struct {
	// Expected counts the nodes that run a daemon or should, Connected those with a connection, and
	// Missing those that lists leave out.
	Expected, Connected, Missing int
}

// With returns the connected nodes that hold volumes of the namespace, and those that have not said
// yet what they hold. With no namespace it returns the nodes that hold any volume, each with one
// Holding, which is the sum. Nodes that do not answer are left out; Missing names them.
func (r *Registry) With(namespace string) []Held {
	return r.holding(func(h *holdings) []api.Holding {
		if namespace != "" {
			return h.of(namespace)
		}
		if sum, ok := h.sum(); ok {
			return []api.Holding{sum}
		}
		return nil
	})
}

// WithoutNamespace returns the nodes that hold volumes whose namespace is not known, like With.
func (r *Registry) WithoutNamespace() []Held {
	return r.holding(func(h *holdings) []api.Holding { return h.of("") })
}

func (r *Registry) holding(of func(*holdings) []api.Holding) []Held {
	var held []Held
	for _, n := range r.all() {
		l := n.look()
		if !l.connected || l.skipped {
			continue
		}
		h := Held{Conn: n, Known: l.heard != nil}
		if h.Known {
			h.Holdings = of(&l.heard.holdings)
		}
		if !h.Known || len(h.Holdings) > 0 {
			held = append(held, h)
		}
	}
	return held
}

// Get returns a connected node, also one that did not answer lately.
func (r *Registry) Get(node string) (Conn, bool) {
	if n := r.find(node); n != nil && n.current() != nil {
		return n, true
	}
	return nil, false
}

// ByHash returns the nodes with that hash, connected or not, ordered by name.
func (r *Registry) ByHash(hash uint32) []NodeState {
	return r.states(func(node string, n *node) bool {
		if n != nil {
			return n.hash == hash
		}
		return r.Hash(node) == hash
	})
}

// Missing returns the nodes that should be there and cannot be asked, ordered by name.
func (r *Registry) Missing() []Missing {
	var missing []Missing
	for _, s := range r.states(func(string, *node) bool { return true }) {
		if s.Reason != "" {
			missing = append(missing, Missing{Node: s.Node, Since: s.Since, Reason: s.Reason})
		}
	}
	return missing
}

// Counts counts nodes.
func (r *Registry) Counts() Counts {
	var c Counts
	for _, s := range r.states(func(string, *node) bool { return true }) {
		c.Expected++
		if s.Conn != nil {
			c.Connected++
		}
		if s.Reason != "" {
			c.Missing++
		}
	}
	return c
}

// states returns the state of all nodes that are picked. n is nil if the node was never connected.
func (r *Registry) states(pick func(name string, n *node) bool) []NodeState {
	expected, synced := r.Expected.Nodes()
	var states []NodeState
	for _, n := range r.all() {
		_, should := expected[n.name]
		delete(expected, n.name)
		if !pick(n.name, n) {
			continue
		}
		switch l := n.look(); {
		case l.connected && l.skipped:
			states = append(states, NodeState{Node: n.name, Conn: n, Since: l.failed, Reason: NotAnswering})
		case l.connected:
			states = append(states, NodeState{Node: n.name, Conn: n})
		case should || !synced:
			states = append(states, NodeState{Node: n.name, Since: l.lost, Reason: NotConnected})
		default:
			r.forget(n)
		}
	}
	for name, since := range expected {
		if pick(name, nil) {
			states = append(states, NodeState{Node: name, Since: latest(r.started, since), Reason: NotConnected})
		}
	}
	slices.SortFunc(states, func(a, b NodeState) int { return strings.Compare(a.Node, b.Node) })
	return states
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
