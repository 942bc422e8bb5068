package hub

import (
	"slices"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
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
	// Holdings are those that may be of the namespace that was asked for. There are several if the node
	// has volumes of earlier namespaces of that name.
	Holdings []api.Holding
	// Skip is NotAnswering if the node should not be asked now; else it is empty.
	Skip string
}

// SumOfNamespaces is the namespace of a holding that is a sum; see [Registry.Each]. No namespace has
// that name.
const SumOfNamespaces = "+"

// Unknown are the holdings of a node of which nothing is known.
var Unknown = []api.Holding{{Namespace: volume.OtherNamespaces, Volumes: 1}}

// Why a node is missing.
const (
	// NotConnected: there is no connection.
	NotConnected = "NotConnected"
	// NotAnswering: the node is connected, and did not answer twice in a row. It is not asked for ten
	// seconds.
	NotAnswering = "NotAnswering"
)

// Missing is a node that should be connected and is not.
type Missing struct {
	Node string
	// Since is when the last connection ended, or since when the node is waited for.
	Since  time.Time
	Reason string
}

// NodeState is a node that is connected or should be.
type NodeState struct {
	Node string
	// Conn is nil if there is no connection. The node is then one of those that Missing returns.
	Conn Conn
	// Reason is empty, NotConnected or NotAnswering, and Since says since when.
	Since  time.Time
	Reason string
}

// Counts are numbers of nodes.
type Counts struct {
	// Expected counts the nodes that are connected or should be, Connected those that are, to this replica.
	Expected, Connected int
	// Elsewhere counts those that are connected to other replicas alone, as far as is known without asking.
	Elsewhere int
}

// Each returns the connected nodes, with what they may hold of the namespace. A node that has too many
// namespaces to count each has a holding of [volume.OtherNamespaces], and so has one that has not
// said yet what it holds.
//
// With no namespace each has at most three holdings: that without a namespace, that of OtherNamespaces, and a sum
// of all others, of [SumOfNamespaces]. With [AnyNamespace] the holdings say nothing.
func (r *Registry) Each(namespace string) []Held {
	nodes := r.all()
	held := make([]Held, 0, len(nodes))
	for _, n := range nodes {
		l := n.look()
		if !l.connected {
			continue
		}
		h := Held{Conn: n, Holdings: Unknown}
		if l.skipped {
			h.Skip = NotAnswering
		}
		switch {
		case l.heard == nil, namespace == AnyNamespace:
		case namespace == "":
			h.Holdings = l.heard.holdings.sums()
		default:
			h.Holdings = l.heard.holdings.of(namespace)
		}
		held = append(held, h)
	}
	return held
}

// Get returns a node that is connected to a replica, also one that did not answer lately.
func (r *Registry) Get(node string) (Conn, bool) {
	n := r.find(node)
	connected, answers := false, false
	if r.Replicas != nil {
		connected, answers = r.Replicas.Has(node)
	}
	if n != nil {
		if l := n.look(); l.connected && (!l.skipped || !answers) {
			return n, true
		}
	}
	// Not over a connection here: if there is one, the node does not answer it.
	return newNode(r, node), connected
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

// missing returns the nodes that should be connected and are not, ordered by name, and how many nodes there are, those
// among them.
func (r *Registry) missing() (missing []Missing, count int) {
	all := r.states(func(string, *node) bool { return true })
	for _, s := range all {
		if s.Conn == nil {
			missing = append(missing, Missing{Node: s.Node, Since: s.Since, Reason: s.Reason})
		}
	}
	return missing, len(all)
}

// Counts counts nodes.
func (r *Registry) Counts() Counts {
	var c Counts
	var others map[string]bool
	if r.Replicas != nil {
		others = r.Replicas.Names()
	}
	for _, s := range r.states(func(string, *node) bool { return true }) {
		c.Expected++
		switch {
		case s.Conn != nil:
			c.Connected++
		case others[s.Node]:
			c.Elsewhere++
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
			states = append(states, NodeState{Node: n.name, Conn: n, Since: duration.ByNow(l.failed), Reason: NotAnswering})
		case l.connected:
			states = append(states, NodeState{Node: n.name, Conn: n})
		case should || !synced:
			states = append(states, NodeState{Node: n.name, Since: duration.ByNow(l.lost), Reason: NotConnected})
		default:
			r.forget(n)
		}
	}
	for name, since := range expected {
		if pick(name, nil) {
			states = append(states, NodeState{Node: name, Since: duration.ByNow(latest(r.started, since)), Reason: NotConnected})
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
