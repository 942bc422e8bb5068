package clustertest

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/server"
	"github.com/katbox/katbox/internal/gateway/trust"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
)

// startGateway makes the gateway. The API server is believed, as if it had shown its certificate.
func (c *Cluster) startGateway() {
	c.t.Helper()
	f, err := fleet.New(fleet.Config{
		Nodes: registry{c}, Namespaces: namespaces{c}, Owners: owners{c}, Key: make([]byte, fleet.KeySize), Namespace: "katbox",
		Log: logr.Discard(),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.gateway, err = server.New(server.Config{
		Authenticator: believing{}, Authorizer: authorizer{c}, Fleet: f, Client: c.client, Namespace: "katbox",
		Ready: func() error { return nil }, Log: logr.Discard(), Version: "v1-gateway",
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(c.gateway.Stop)
}

// Lost says that a node is not connected, whatever it holds.
func (c *Cluster) Lost(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodes, node)
	c.missing = append(c.missing, fleet.Missing{Node: node, Reason: fleet.NotConnected})
}

func (c *Cluster) client(node string) (*api.Client, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.nodes[node]
	if !ok {
		return nil, false
	}
	return n.client, true
}

type believing struct{}

func (believing) Authenticate(r *http.Request) (user.Info, error) {
	return &user.DefaultInfo{Name: r.Header.Get("X-Remote-User")}, nil
}

type authorizer struct{ c *Cluster }

func (a authorizer) Allowed(_ context.Context, who user.Info, what trust.Attributes) (bool, string, error) {
	return a.c.may(who.GetName(), what.Verb, what.Subresource, what.Namespace), "", nil
}

type registry struct{ c *Cluster }

// Look returns all nodes; they say themselves what they hold.
func (r registry) Look(_ context.Context, namespace string) (l fleet.Look) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	for _, n := range r.c.nodes {
		l.Held = append(l.Held, fleet.Held{Node: fleetNode{n}, Holdings: []api.Holding{{Namespace: namespace, Volumes: 1}}})
	}
	l.Missing, l.Count = append(l.Missing, r.c.missing...), len(r.c.nodes)+len(r.c.missing)
	if r.c.arrays != nil {
		l.Held = append(l.Held, r.c.arrays.With(namespace)...)
		l.Arrays = true
	}
	return l
}

func (r registry) ByHash(_ context.Context, hash uint32) (states []fleet.State) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	for name, n := range r.c.nodes {
		if resource.NodeHash(name) == hash {
			states = append(states, fleet.State{Node: fleetNode{n}})
		}
	}
	for _, m := range r.c.missing {
		if resource.NodeHash(m.Node) == hash {
			states = append(states, fleet.State{Missing: m})
		}
	}
	if r.c.arrays != nil && resource.NodeHash(fleet.Arrays) == hash {
		states = append(states, fleet.State{Node: r.c.arrays})
	}
	return states
}

type namespaces struct{ c *Cluster }

func (n namespaces) Tenancy(namespace string) (volume.Tenancy, bool) {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	t, ok := n.c.tenancies[namespace]
	return t, ok
}

func (n namespaces) Lookup(_ context.Context, namespace string) (volume.Tenancy, bool, error) {
	t, ok := n.Tenancy(namespace)
	return t, ok, nil
}

type owners struct{ c *Cluster }

func (o owners) Verdict(podUID, _ string) (api.Owner, bool) {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	owner, ok := o.c.owners[podUID]
	return owner, ok
}
