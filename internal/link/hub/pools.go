package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/katbox/katbox/internal/link/wire"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
)

// Pools learns which pools nodes have on their disks. It is called for one node at a time, and must not block.
type Pools interface {
	// NodePools: a node has connected, or its pools have changed. on asks the node, over whichever of its
	// connections is the newest; it is the same until NodeAway, and another one when the node comes back.
	NodePools(node, version string, on local.Pools, all []local.Pool)
	// NodeAway: the last connection of a node has ended.
	NodeAway(node string, on local.Pools)
}

// session is a node from its first connection that has told its pools until its last connection has ended.
type session struct {
	on    *wire.Client
	pools []local.Pool
}

// asked is how the client of a session reaches its node.
type asked struct{ node *node }

// RoundTrip sends a request. The error is a [volume.ErrUnavailable] where nothing was sent.
func (a asked) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.node.RoundTrip(request)
	if errors.Is(err, ErrAway) {
		return nil, fmt.Errorf("%w: %w", volume.ErrUnavailable, err)
	}
	return response, err
}

type poolsBound struct{}

func (poolsBound) most() int { return wire.MostPools }

// takePools takes a line about a node's pools.
func (c *connection) takePools(line []byte) error {
	var s struct {
		Full  bool                            `json:"full"`
		Pools bounded[local.Pool, poolsBound] `json:"pools"`
	}
	if err := json.Unmarshal(line, &s); err != nil {
		return fmt.Errorf("%w: read a summary of pools: %w", errProtocol, err)
	}
	if !s.Full {
		return nil
	}
	if err := wire.CheckPools(s.Pools); err != nil {
		return fmt.Errorf("%w: %w", errProtocol, err)
	}
	older, ok := c.node.has(c)
	if !ok {
		return nil
	}
	for _, old := range older {
		old.retire()
	}
	c.registry.tellPools(c, s.Pools)
	return nil
}

// tellPools tells of a node's pools, unless the connection has ended meanwhile or nothing is new.
func (r *Registry) tellPools(c *connection, all []local.Pool) {
	r.telling.Lock()
	defer r.telling.Unlock()
	n := c.node
	if !n.isHeard(c) {
		return
	}
	first := n.session == nil
	if first {
		n.session = &session{on: wire.NewClient(n.name, asked{n})}
	}
	if !first && n.version == c.version && slices.EqualFunc(n.session.pools, all, wire.SamePool) {
		return
	}
	n.session.pools, n.version = all, c.version
	r.Pools.NodePools(n.name, c.version, n.session.on, all)
}

// tellAway tells that a node is away, unless it has come back.
func (r *Registry) tellAway(n *node) {
	r.telling.Lock()
	defer r.telling.Unlock()
	// When the controller ends, the nodes stay where they are.
	if n.session == nil || n.current() != nil || r.ctx.Err() != nil {
		return
	}
	on := n.session.on
	n.session = nil
	r.Pools.NodeAway(n.name, on)
}
