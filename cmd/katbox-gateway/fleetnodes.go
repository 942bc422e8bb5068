package main

import (
	"context"

	"github.com/katbox/katbox/internal/gateway/arrays"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// fleetNodes are the nodes of the registry in the words of the fleet, which knows no connections; and what is retained
// on arrays, as if a node had that.
type fleetNodes struct {
	*hub.Registry
	arrays *arrays.Arrays
}

// Look returns what there is, with the nodes that may hold volumes of a namespace.
func (f fleetNodes) Look(ctx context.Context, namespace string) fleet.Look {
	l := f.lookOf(f.Registry.Look(ctx, namespace))
	l.Held = append(l.Held, f.arrays.With(namespace)...)
	return l
}

// LookAll returns what there is, with all nodes that are connected.
func (f fleetNodes) LookAll(ctx context.Context) fleet.Look {
	return f.lookOf(f.Registry.Look(ctx, hub.AnyNamespace))
}

func (f fleetNodes) lookOf(all hub.Fleet) fleet.Look {
	l := fleet.Look{Held: heldOf(all.Held), Missing: make([]fleet.Missing, len(all.Missing)), Count: all.Count, Arrays: f.arrays.There()}
	for i, m := range all.Missing {
		l.Missing[i] = fleet.Missing(m)
	}
	if one, is := f.arrays.Missing(); is {
		l.Missing = append(l.Missing, one)
	}
	return l
}

func heldOf(found []hub.Held) []fleet.Held {
	held := make([]fleet.Held, len(found))
	for i, h := range found {
		held[i] = fleet.Held{Node: fleetNode{h.Conn}, Holdings: h.Holdings, Skip: h.Skip}
	}
	return held
}

// ByHash returns the nodes whose name has a hash, connected or not.
func (f fleetNodes) ByHash(ctx context.Context, hash uint32) []fleet.State {
	found := f.Named(ctx, hash)
	states := make([]fleet.State, len(found))
	for i, s := range found {
		states[i].Missing = fleet.Missing{Node: s.Node, Since: s.Since, Reason: s.Reason}
		if s.Conn != nil {
			states[i].Node = fleetNode{s.Conn}
		}
	}
	if hash == resource.NodeHash(fleet.Arrays) && f.arrays.There() {
		state := fleet.State{Node: f.arrays}
		if missing, is := f.arrays.Missing(); is {
			state = fleet.State{Missing: missing}
		}
		states = append(states, state)
	}
	return states
}

// fleetNode asks a node for a list.
type fleetNode struct{ hub.Conn }

// List asks on behalf of a reader, for the node's log.
func (n fleetNode) List(ctx context.Context, by fleet.Reader, q api.Query) (api.VolumeList, error) {
	return n.Client().OnBehalf(by.User, by.AuditID).List(ctx, q)
}

// Gone asks on behalf of a reader, for the node's log.
func (n fleetNode) Gone(ctx context.Context, by fleet.Reader, q api.GoneQuery) (api.GoneList, error) {
	return n.Client().OnBehalf(by.User, by.AuditID).Gone(ctx, q)
}

// Grep asks on behalf of a reader, for the node's log.
func (n fleetNode) Grep(ctx context.Context, by fleet.Reader, q api.GrepQuery) (*api.GrepStream[api.Volume], error) {
	return n.Client().OnBehalf(by.User, by.AuditID).Grep(ctx, q)
}

// clientOf returns how the client of a node is found.
func clientOf(registry *hub.Registry) func(string) (*api.Client, bool) {
	return func(node string) (*api.Client, bool) {
		conn, ok := registry.Get(node)
		if !ok {
			return nil, false
		}
		return conn.Client(), true
	}
}
