package fleet

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

const (
	// comparing is how many nodes are asked at once which volumes they have.
	comparing = 16
	// adjusted is by how much the clock of a node is adjusted at most between two times that it says when a volume was retained.
	adjusted = time.Hour
	// mostKnown is how many volumes of nodes one search knows; each takes some 20 bytes.
	mostKnown = 1 << 20
)

// onNodes knows which archived volumes are on their nodes, too: there they are searched. Those of a node that does not say are none of
// them, nor are those beyond mostKnown: a volume is rather found twice than not at all. It is for one search.
type onNodes struct {
	looks map[string][]*look
	seed  maphash.Seed

	mu    sync.Mutex
	known map[uint64]struct{}
}

// look asks a node which volumes it has, each once and the newest first: it may have a copied volume again, retained later.
type look struct {
	*source
	// down is as of when its volumes are known; zero for none. done: it is not asked again.
	down time.Time
	done bool
}

func newOnNodes(sources []*source) *onNodes {
	o := &onNodes{looks: map[string][]*look{}, seed: maphash.MakeSeed(), known: map[uint64]struct{}{}}
	for _, s := range sources {
		if !s.archived {
			o.looks[s.name] = append(o.looks[s.name], &look{source: s})
		}
	}
	return o
}

// has reports whether the node of an archived volume that learn has seen has that volume.
func (o *onNodes) has(e *Entry) bool {
	_, has := o.known[o.sum(e)]
	return has
}

func (o *onNodes) sum(e *Entry) uint64 {
	return maphash.Comparable(o.seed, copyOf{e.Volume.Node, e.Volume.ID})
}

// learn asks the nodes of archived volumes as far down as these go.
func (o *onNodes) learn(ctx context.Context, copies []*Entry) {
	last := map[string]*Entry{}
	for _, e := range copies { // the newest first
		last[e.Volume.Node] = e
	}
	slots := make(chan struct{}, comparing)
	var running sync.WaitGroup
	for name, e := range last {
		down := *e.Volume.RetainedAt
		for _, l := range o.looks[name] {
			if l.done || !l.down.IsZero() && !down.Add(-adjusted).Before(l.down) {
				continue
			}
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				l.done = !o.ask(ctx, l, e.Volume.ID, down.Add(-adjusted))
			})
		}
	}
	running.Wait()
}

// ask learns what the node has as of a time; id is that of any volume. It returns false if there is no more to learn.
func (o *onNodes) ask(ctx context.Context, l *look, id string, down time.Time) bool {
	of := &source{fleet: l.fleet, reader: l.reader, node: l.node, name: l.name, query: l.query}
	if !l.down.IsZero() {
		of.frontier = place{at: l.down.Add(1), id: id, node: l.name}
	}
	more := of.query.Since.Before(down)
	if more {
		of.query.Since = down
	}
	for !of.ended {
		asking, cancel := context.WithTimeout(ctx, nodeTime)
		entries, err := of.next(asking, mostLimit)
		cancel()
		if err != nil || !o.add(entries) {
			return false
		}
		of.seen = nil // which would hold all volumes of the node in the end
	}
	l.down = down
	return more
}

// add adds volumes of a node. It returns false if no more fit.
func (o *onNodes) add(entries []*Entry) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range entries {
		if len(o.known) == mostKnown {
			return false
		}
		o.known[o.sum(e)] = struct{}{}
	}
	return true
}
