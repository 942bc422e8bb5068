package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/lib/grep"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// archiveSearchTime is how long a search may read from the archive, as long as on a node.
	archiveSearchTime = 10 * time.Minute
	// archivePage is how many archived volumes are listed at once.
	archivePage = 500
	// mostCounted is how many volumes are counted that are not searched.
	mostCounted = 1000
	// comparing is how many nodes are asked at once which of some volumes they have.
	comparing = 16
	// toldEvery is how long what was found in the archive waits for more.
	toldEvery = 100 * time.Millisecond
)

// VolumeSearch searches archived volumes, one after another. It is for one goroutine.
type VolumeSearch interface {
	// Volume searches a volume, and calls found for what it finds. The error is that of found or of tick, the cause of the end of
	// ctx, a [*grep.UsedUpError], or why the archive cannot be read. What else is not searched is in the Sums.
	Volume(ctx context.Context, v api.Volume, found func(api.GrepFound) error) error
	// Sums are what was searched by now.
	Sums() api.GrepSums
}

// errCounted: there are more volumes than are counted.
var errCounted = errors.New("there are more")

// archive searches what is in the archive alone, or counts it.
func (s *Search) archive(ctx context.Context, parts []*source, tell func(Entry, []api.GrepFound) error) {
	var err error
	switch {
	case s.one != nil, s.archived:
		err = s.searchArchive(ctx, parts, tell)
	default:
		err = s.countArchive(ctx, parts)
	}
	for _, part := range parts {
		if part.answered = err == nil; err != nil {
			part.failure = reasonOf(err)
		}
	}
	if err != nil {
		s.list.cfg.Log.V(1).Info("the archive was not searched", logkeys.Cause, volume.OneLine(err))
	}
}

// countArchive counts the volumes that would be searched.
func (s *Search) countArchive(ctx context.Context, parts []*source) error {
	within, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	count := int64(0)
	err := s.inArchive(within, parts, func(*source, *Entry) error {
		if count == mostCounted {
			return errCounted
		}
		count++
		return nil
	})
	more := errors.Is(err, errCounted) || count > 0 && within.Err() != nil && ctx.Err() == nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.leftMore = count, more
	if more {
		return nil
	}
	return err
}

// searchArchive searches volumes until a budget is used up.
func (s *Search) searchArchive(ctx context.Context, parts []*source, tell func(Entry, []api.GrepFound) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, archiveSearchTime, &grep.UsedUpError{Budget: api.StopTime})
	defer cancel()
	a := &answerOf{grep: s.grep}
	told := time.Now()
	tellAll := func() error {
		told = time.Now()
		return a.tell(tell)
	}
	search, err := s.list.cfg.Archive.Search(s.list.r.Reader, s.grep, func() error {
		if time.Since(told) < toldEvery {
			return nil
		}
		return tellAll()
	})
	if err != nil {
		return err
	}
	one := func(part *source, e *Entry) error {
		a.source, a.in = part, e
		err := search.Volume(ctx, e.Volume, func(f api.GrepFound) error {
			return a.take(api.GrepRecord[api.Volume]{Found: &f}, true, tell)
		})
		return errors.Join(err, tellAll())
	}
	if s.one != nil {
		err = one(parts[0], s.one)
	} else {
		err = s.inArchive(ctx, parts, one)
	}
	sums := search.Sums()
	if up := (*grep.UsedUpError)(nil); errors.As(err, &up) || err != nil && errors.As(context.Cause(ctx), &up) {
		sums.Stop(up.Budget)
		err = nil
	}
	s.add(parts[0], sums)
	return err
}

// inArchive calls fn with the volumes that no node has, the newest first of each namespace.
func (s *Search) inArchive(ctx context.Context, parts []*source, fn func(*source, *Entry) error) error {
	for _, part := range parts {
		for !part.ended {
			asking, cancel := context.WithTimeout(ctx, archiveTime)
			entries, err := part.next(asking, archivePage)
			cancel()
			if err != nil {
				return err
			}
			part.seen = nil // which would hold all volumes of the archive in the end
			on := s.onNodes(ctx, entries)
			for _, e := range entries {
				if on[copyOf{e.Volume.Node, e.Volume.ID}] {
					continue
				}
				if err := fn(part, e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// onNodes returns which archived volumes their nodes have, too: there they are searched. Those of a node that does not say are none of
// them: rather is something found twice than not at all.
func (s *Search) onNodes(ctx context.Context, entries []*Entry) map[copyOf]bool {
	of := map[string][]*Entry{}
	for _, e := range entries {
		of[e.Volume.Node] = append(of[e.Volume.Node], e)
	}
	on := map[copyOf]bool{}
	var mu sync.Mutex
	var running sync.WaitGroup
	slots := make(chan struct{}, comparing)
	for _, node := range s.list.sources {
		if node.archived || of[node.name] == nil {
			continue
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			has := node.has(ctx, of[node.name])
			mu.Lock()
			defer mu.Unlock()
			for _, e := range has {
				on[copyOf{e.Volume.Node, e.Volume.ID}] = true
			}
		})
	}
	running.Wait()
	return on
}

// has returns which of some archived volumes, the newest first, the node has: it asks for all that were retained in their time.
func (s *source) has(ctx context.Context, copies []*Entry) (has []*Entry) {
	first, last := placeOf(&copies[0].Volume), placeOf(&copies[len(copies)-1].Volume)
	look := &source{fleet: s.fleet, reader: s.reader, node: s.node, name: s.name, query: s.query}
	look.query.Since = last.at
	look.frontier = place{at: first.at.Add(1), id: first.id, node: s.name}
	wanted := map[string]*Entry{}
	for _, e := range copies {
		wanted[e.Volume.ID] = e
	}
	for !look.ended && ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, nodeTime)
		entries, err := look.next(asking, mostLimit)
		cancel()
		if err != nil {
			return has
		}
		for _, e := range entries {
			if wanted[e.Volume.ID] != nil {
				has = append(has, wanted[e.Volume.ID])
			}
		}
		look.seen = nil
	}
	return has
}
