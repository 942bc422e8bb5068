package pools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// servers are the server records of nodes on arrays. Many volumes are attached to a node at the same
// time and share a record: one task makes it, and none deletes it while another attaches something.
// Tasks use it, which may wait; actors do not.
type servers struct {
	mu sync.Mutex
	of map[serverOf]*serverRecord
}

type serverOf struct{ pool, node string }

// serverRecord is the server record of a node on an array. A task that attaches shares it; one that
// makes or deletes records holds it alone.
type serverRecord struct {
	// slots are taken by those that share it. alone is for the one that wants them all.
	slots, alone chan struct{}
	// users are the tasks that hold it, or wait for it.
	users int
	// known are the IDs of records that are on the array.
	known map[serverUse]string
}

// serverUse is what a record has to be, and for which protocol.
type serverUse struct {
	array.NewServer
	protocol v1alpha1.Protocol
}

// attachesAtOnce is how many volumes are attached to a node at the same time. An array takes fewer
// requests at once.
const attachesAtOnce = 8

// hold waits until a task may use the record, with others or alone.
func (r *serverRecord) hold(ctx context.Context, alone bool) (release func(), err error) {
	slots, taken := 1, 0
	stopping := rules.Errorf(volume.ErrUnavailable, "the controller is stopping")
	if alone {
		slots = cap(r.slots)
		select {
		case r.alone <- struct{}{}:
		case <-ctx.Done():
			return nil, stopping
		}
	}
	release = func() {
		for range taken {
			<-r.slots
		}
		if alone {
			<-r.alone
		}
	}
	for ; taken < slots; taken++ {
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			release()
			return nil, stopping
		}
	}
	return release, nil
}

func newServers() *servers { return &servers{of: map[serverOf]*serverRecord{}} }

// enter returns the record of a node, until leave.
func (s *servers) enter(key serverOf) *serverRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of[key]
	if r == nil {
		r = &serverRecord{slots: make(chan struct{}, attachesAtOnce), alone: make(chan struct{}, 1), known: map[serverUse]string{}}
		s.of[key] = r
	}
	r.users++
	return r
}

func (s *servers) leave(key serverOf, r *serverRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.users--; r.users == 0 && len(r.known) == 0 {
		delete(s.of, key)
	}
}

// withServer calls attach with the ID of the server record of a node. The record exists until attach
// has returned, unless someone else deletes it.
func (t *task) withServer(ctx context.Context, pool poolmessages.UsablePool, node *v1alpha1.PoolNode, protocol v1alpha1.Protocol,
	attach func(id string) error,
) error {
	key := serverOf{pool.Name, node.Name}
	record := t.servers.enter(key)
	defer t.servers.leave(key, record)
	use := serverUse{array.NewServer{
		Name: pools.ServerName(node.Name, t.Cluster), IQN: node.Spec.IQN, Address: node.Spec.Addresses[0],
	}, protocol}

	err := record.attachWith(ctx, use, attach)
	if !errors.Is(err, array.ErrNotFound) {
		return err
	}
	release, err := record.hold(ctx, true)
	if err != nil {
		return err
	}
	defer release()
	id, err := ensureServer(ctx, pool.Array, use.NewServer, protocol)
	if err != nil {
		return t.arrayError(pool.Name, err, "make the server record of node "+node.Name)
	}
	record.known[use] = id
	return attach(id)
}

// attachWith attaches with a record that is known. The error is [array.ErrNotFound] where there is none.
func (r *serverRecord) attachWith(ctx context.Context, use serverUse, attach func(id string) error) error {
	release, err := r.hold(ctx, false)
	if err != nil {
		return err
	}
	defer release()
	id, ok := r.known[use]
	if !ok {
		return array.ErrNotFound
	}
	return attach(id)
}

// compare forgets the records of nodes on a pool that are not on its array any more, or are not what they were: the next
// attachment makes them anew.
func (s *servers) compare(ctx context.Context, pool string, there map[string]array.Server) error {
	s.mu.Lock()
	var keys []serverOf
	for key := range s.of {
		if key.pool == pool {
			keys = append(keys, key)
		}
	}
	s.mu.Unlock()
	for _, key := range keys {
		if err := s.compareNode(ctx, key, there); err != nil {
			return err
		}
	}
	return nil
}

func (s *servers) compareNode(ctx context.Context, key serverOf, there map[string]array.Server) error {
	record := s.enter(key)
	defer s.leave(key, record)
	wrong := func(use serverUse, id string) bool {
		listed, ok := there[id]
		return !ok || !use.isRight(listed) && !use.isUnsaid(listed)
	}
	for _, alone := range []bool{false, true} {
		release, err := record.hold(ctx, alone)
		if err != nil {
			return err
		}
		found := false
		for use, id := range record.known {
			found = found || wrong(use, id)
		}
		if found && alone {
			maps.DeleteFunc(record.known, wrong)
		}
		release()
		if !found {
			break
		}
	}
	return nil
}

// isRight reports whether a record lets in what the use needs.
func (u serverUse) isRight(s array.Server) bool {
	return u.protocol == v1alpha1.ISCSI && strings.EqualFold(s.IQN, u.IQN) || u.protocol == v1alpha1.NFS && s.Address == u.Address
}

// isUnsaid reports whether a list has left out what the use needs to know of a record.
func (u serverUse) isUnsaid(s array.Server) bool {
	return u.protocol == v1alpha1.ISCSI && s.IQN == "" || u.protocol == v1alpha1.NFS && s.Address == ""
}

// ensureServer returns a server record that is right for a protocol. The node's record cannot be
// changed while something is attached to it; then there is a second one, until the first is not used any more.
func ensureServer(ctx context.Context, a array.Array, want array.NewServer, protocol v1alpha1.Protocol) (id string, err error) {
	all, err := a.Servers(ctx)
	if err != nil {
		return "", err
	}
	for _, s := range all {
		if (serverUse{want, protocol}).isRight(s) && isServerOf(s, want.Name) {
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
	key := serverOf{pool.Name, node}
	record := t.servers.enter(key)
	defer t.servers.leave(key, record)
	release, err := record.hold(ctx, true)
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
	for use, known := range record.known {
		if known == id {
			delete(record.known, use) // also where it is not known whether it was deleted
		}
	}
	if err != nil {
		return t.arrayError(pool.Name, err, "delete the server record of node "+node)
	}
	return nil
}
