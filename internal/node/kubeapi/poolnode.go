package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/katbox/katbox/internal/model/volume"
)

// group is that of the custom resources.
const group = "pools.katbox.io"

// NewNode is how a node appears on the storage network.
type NewNode struct {
	// Name is the node's.
	Name string
	// Addresses on the storage network; the first one is used. There is one at least.
	Addresses []string
	// IQN is the node's iSCSI initiator.
	IQN string
}

// Change is what [Client.EnsureNode] has done.
type Change int

// The changes.
const (
	// Unchanged: the PoolNode was right.
	Unchanged Change = iota
	// Made: there was none.
	Made
	// Corrected: it said something else.
	Corrected
)

// poolNode is a PoolNode, as far as a node writes it.
type poolNode struct {
	APIVersion string   `json:"apiVersion,omitempty"`
	Kind       string   `json:"kind,omitempty"`
	Metadata   metadata `json:"metadata"`
	Spec       nodeSpec `json:"spec"`
}

type nodeSpec struct {
	Addresses []string `json:"addresses"`
	IQN       string   `json:"iqn,omitempty"`
}

type metadata struct {
	Name string `json:"name,omitempty"`
	// ResourceVersion in a patch: the change is refused if the object is not this one any more.
	ResourceVersion string  `json:"resourceVersion,omitempty"`
	UID             string  `json:"uid,omitempty"`
	Deletion        *string `json:"deletionTimestamp,omitempty"`
}

// EnsureNode makes the node's PoolNode say what n says. It looks first, at what the API server has in its
// memory: a node that changes nothing costs the API server next to nothing.
func (c *Client) EnsureNode(ctx context.Context, n NewNode) (Change, error) {
	if len(n.Addresses) == 0 {
		return Unchanged, fmt.Errorf("%w: the PoolNode %s without an address", volume.ErrInvalid, n.Name)
	}
	var have poolNode
	err := c.do(ctx, request{verb: "get", group: group, resource: "poolnodes", name: n.Name, cached: true}, &have)
	want := nodeSpec{Addresses: n.Addresses, IQN: n.IQN}
	switch {
	case errors.Is(err, volume.ErrNotFound):
		return c.makeNode(ctx, n.Name, want)
	case err != nil:
		return Unchanged, err
	case have.Metadata.Deletion != nil:
		return Unchanged, fmt.Errorf("%w: the PoolNode %s is being deleted; it is made again after that", volume.ErrUnavailable, n.Name)
	case have.Spec.IQN == want.IQN && slices.Equal(have.Spec.Addresses, want.Addresses):
		return Unchanged, nil
	}
	return c.correctNode(ctx, n.Name, want)
}

func (c *Client) makeNode(ctx context.Context, name string, spec nodeSpec) (Change, error) {
	err := c.do(ctx, request{verb: "create", group: group, resource: "poolnodes", name: name, body: poolNode{
		APIVersion: group + "/v1alpha1", Kind: "PoolNode", Metadata: metadata{Name: name}, Spec: spec,
	}}, nil)
	if errors.Is(err, errChanged) {
		return c.correctNode(ctx, name, spec) // what was looked at is older
	}
	if err != nil {
		return Unchanged, err
	}
	return Made, nil
}

// correctNode makes a PoolNode say what it should. Only the node itself writes it, so that no version of it
// has to be named.
func (c *Client) correctNode(ctx context.Context, name string, spec nodeSpec) (Change, error) {
	err := c.do(ctx, request{verb: "patch", group: group, resource: "poolnodes", name: name,
		body: map[string]any{"spec": map[string]any{"addresses": spec.Addresses, "iqn": spec.IQN}}}, nil)
	if errors.Is(err, volume.ErrNotFound) {
		return Unchanged, fmt.Errorf("%w: the PoolNode %s was deleted meanwhile; it is made again", volume.ErrUnavailable, name)
	}
	if err != nil {
		return Unchanged, err
	}
	return Corrected, nil
}
