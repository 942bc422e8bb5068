package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/katbox/katbox/internal/model/api"
)

// Lookup asks for one volume by its name.
type Lookup struct {
	Reader    Reader
	Namespace string
	// NodeHash is the hash of the node's name.
	NodeHash uint32
	// Pod is the pod's name. If Truncated, it is only the beginning. It is empty if the name of the
	// volume does not say.
	Pod       string
	Truncated bool
	// Name is the name itself, for the archive.
	Name string
	// Match reports whether this is the volume. It is called from several goroutines.
	Match func(api.Volume) bool
}

// Found is a volume, and the node that has it.
type Found struct {
	Entry
	Node Node
	// Away is why the node of a volume that is found in the archive could not be asked whether it has it, too; nil if it does not.
	Away error
}

// queries returns what a node is asked for.
func (f *Fleet) queries(ctx context.Context, l Lookup) ([]api.Query, error) {
	q := api.Query{Namespace: l.Namespace}
	if l.Truncated {
		q.PodPrefix = l.Pod
	} else {
		q.Pod = l.Pod
	}
	if !l.Reader.Everywhere {
		tenancy, ok, err := f.cfg.Namespaces.Lookup(ctx, l.Namespace)
		if err != nil {
			return nil, fmt.Errorf("look up the namespace %s: %w", l.Namespace, err)
		}
		if !ok {
			return nil, ErrNotFound // no volume belongs to it
		}
		q.Tenancy = &tenancy
		return []api.Query{q}, nil
	}
	if l.Namespace != f.cfg.Namespace {
		return []api.Query{q}, nil
	}
	unknown := q
	unknown.Namespace, unknown.NoNamespace = "", true
	return []api.Query{unknown, q}, nil
}

// Find returns the volume that has a name: from its node, and where that does not have it or cannot be asked, from the archive.
// The errors to expect are ErrNotFound, ErrSilent, ErrArchive, a NotConnectedError, an api.Error of the node, and those of
// Namespaces.Lookup.
func (f *Fleet) Find(ctx context.Context, l Lookup) (Found, error) {
	queries, err := f.queries(ctx, l)
	if err != nil {
		return Found{}, err
	}
	found, err := f.findOnNode(ctx, l, queries)
	if err == nil || f.cfg.Archive == nil || ctx.Err() != nil {
		return found, err
	}
	// The last query is about the namespace itself.
	copied, missed := f.findArchived(ctx, l, queries[len(queries)-1])
	if missed == nil && !errors.Is(err, ErrNotFound) {
		copied.Away = err
	}
	if missed == nil || errors.Is(missed, ErrArchive) && errors.Is(err, ErrNotFound) {
		return copied, missed
	}
	return Found{}, err
}

// findOnNode is Find without the archive.
func (f *Fleet) findOnNode(ctx context.Context, l Lookup, queries []api.Query) (Found, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	states := f.cfg.Nodes.ByHash(ctx, l.NodeHash) // one, and rarely two
	found, failed := make([]*Found, len(states)), make([]error, len(states))
	var running sync.WaitGroup
	for i, state := range states {
		running.Go(func() { found[i], failed[i] = f.search(ctx, l, state, queries) })
	}
	running.Wait()
	for _, one := range found {
		if one != nil {
			return *one, nil
		}
	}
	for _, err := range failed {
		if err != nil {
			return Found{}, err // the volume may be there
		}
	}
	return Found{}, ErrNotFound
}

// search looks for a volume on one node. It returns nil if the volume is not there.
func (f *Fleet) search(ctx context.Context, l Lookup, on State, queries []api.Query) (*Found, error) {
	if on.Node == nil {
		return nil, &NotConnectedError{Missing: []Missing{on.Missing}}
	}
	most := standardLimit
	if l.Pod == "" {
		most = mostLimit // it goes through all of them
	}
	for _, q := range queries {
		s := &source{fleet: f, reader: l.Reader, node: on.Node, name: on.Node.Node(), query: q}
		for !s.ended {
			s.seen = nil // which would hold all volumes of the node in the end
			entries, err := s.next(ctx, most)
			switch {
			case err != nil && s.failure == NoAnswer:
				return nil, fmt.Errorf("%w in time from node %s", ErrSilent, s.name)
			case err != nil:
				return nil, err
			}
			for _, e := range entries {
				if l.Match(e.Volume) {
					return &Found{Entry: *e, Node: on.Node}, nil
				}
			}
		}
	}
	return nil, nil
}
