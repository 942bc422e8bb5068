package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/katbox/katbox/actors/pools/servers"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// withServer calls attach with the ID of the server record of a node. The record exists until attach
// has returned, unless someone else deletes it.
func (t *task) withServer(ctx context.Context, pool poolmessages.UsablePool, node *v1alpha1.PoolNode, protocol v1alpha1.Protocol,
	attach func(id string) error,
) error {
	key := servers.Key{Pool: pool.Name, Node: node.Name}
	record := t.Servers.Enter(key)
	defer t.Servers.Leave(key, record)
	use := servers.Use{NewServer: array.NewServer{
		Name: pools.ServerName(node.Name, t.Cluster), IQN: node.Spec.IQN, Address: node.Spec.Addresses[0],
	}, Protocol: protocol}

	err := record.AttachWith(ctx, use, attach)
	if !errors.Is(err, array.ErrNotFound) {
		return err
	}
	release, err := record.Hold(ctx, true)
	if err != nil {
		return err
	}
	defer release()
	id, err := ensureServer(ctx, pool.Array, use.NewServer, protocol)
	if err != nil {
		return t.arrayError(pool.Name, err, "make the server record of node "+node.Name)
	}
	record.Known[use] = id
	return attach(id)
}

// ensureServer returns a server record that is right for a protocol. The node's record cannot be
// changed while something is attached to it; then there is a second one, until the first is not used any more.
func ensureServer(ctx context.Context, a array.Array, want array.NewServer, protocol v1alpha1.Protocol) (id string, err error) {
	all, err := a.Servers(ctx)
	if err != nil {
		return "", err
	}
	for _, s := range all {
		if (servers.Use{NewServer: want, Protocol: protocol}).IsRight(s) && isServerOf(s, want.Name) {
			return s.ID, nil
		}
	}
	s, err := a.EnsureServer(ctx, want)
	if !errors.Is(err, array.ErrAttached) {
		return s.ID, err
	}
	if protocol == v1alpha1.NFS {
		want.IQN = ""
	} else {
		want.Address = ""
	}
	want.Name += secondServer + addressHash(want)
	s, err = a.EnsureServer(ctx, want)
	return s.ID, err
}

// secondServer is between the name of a node's server record and what makes a second one's name.
const secondServer = "-at-"

func addressHash(s array.NewServer) string {
	sum := sha256.Sum256([]byte(s.IQN + "\x00" + s.Address))
	return hex.EncodeToString(sum[:4])
}

// isServerOf reports whether a server record is one of the node whose record has the name.
func isServerOf(s array.Server, name string) bool {
	return s.Name == name || strings.HasPrefix(s.Name, name+secondServer)
}

// dropServer deletes a server record of a node to which nothing is attached any more. A record with the name
// of another node, or of another cluster's, stays: nodes may write the ID into a resource.
func (t *task) dropServer(ctx context.Context, pool poolmessages.UsablePool, node, id string) error {
	key := servers.Key{Pool: pool.Name, Node: node}
	record := t.Servers.Enter(key)
	defer t.Servers.Leave(key, record)
	release, err := record.Hold(ctx, true)
	if err != nil {
		return err
	}
	defer release()
	own, err := t.serversOf(ctx, node, pool)
	if err != nil {
		return err
	}
	if slices.Contains(own, id) {
		err = pool.Array.DeleteServer(ctx, id)
	}
	if errors.Is(err, array.ErrAttached) {
		return nil // another volume is
	}
	for use, known := range record.Known {
		if known == id {
			delete(record.Known, use) // also where it is not known whether it was deleted
		}
	}
	if err != nil {
		return t.arrayError(pool.Name, err, "delete the server record of node "+node)
	}
	return nil
}
