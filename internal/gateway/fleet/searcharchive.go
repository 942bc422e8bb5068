package fleet

import (
	"context"
	"errors"
	"slices"
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
	// countGrace is how long the nodes' answer waits for the count.
	countGrace = time.Second
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

// split returns the sources that are nodes, and those that are parts of the archive.
func (s *Search) split() (nodes, parts []*source) {
	for _, one := range s.list.sources {
		if one.archived {
			parts = append(parts, one)
		} else {
			nodes = append(nodes, one)
		}
	}
	return nodes, parts
}

// archive searches what is in the archive alone, or counts it.
func (s *Search) archive(ctx context.Context, parts []*source, tell func(Entry, []api.GrepFound) error) {
	var err error
	if s.counts() {
		s.countArchive(ctx, parts)
	} else if err = s.searchArchive(ctx, parts, tell); err != nil {
		s.list.cfg.Log.V(1).Info("the archive was not searched", logkeys.Cause, volume.OneLine(err))
	}
	for _, part := range parts {
		if part.answered = err == nil; err != nil {
			part.failure = reasonOf(err)
		}
	}
}

// counts reports whether what is in the archive alone is counted, and not searched.
func (s *Search) counts() bool { return s.one == nil && !s.archived }

// countArchive counts the volumes that would be searched. Who does not ask for the archive misses nothing while it cannot be asked.
func (s *Search) countArchive(ctx context.Context, parts []*source) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	count := int64(0)
	err := s.inArchive(ctx, parts, func(*source, *Entry) error {
		if count == mostCounted {
			return errCounted
		}
		count++
		return nil
	})
	if err != nil && !errors.Is(err, errCounted) {
		s.list.cfg.Log.V(1).Info("what is in the archive was not counted", logkeys.Cause, volume.OneLine(err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = count
	s.leftMore = s.leftMore || err != nil
}

// searchArchive searches volumes until a budget is used up.
func (s *Search) searchArchive(ctx context.Context, parts []*source, tell func(Entry, []api.GrepFound) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, archiveSearchTime, &grep.UsedUpError{Budget: api.StopTime})
	defer cancel()
	a := &answerOf{grep: s.grep}
	var search VolumeSearch
	told := time.Now()
	tellAll := func() error {
		told = time.Now()
		s.goesOn(search.Sums())
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
		s.stopped = up.Budget
		err = nil
	}
	s.add(parts[0], sums)
	return err
}

// goesOn takes note of what is searched in the archive by now.
func (s *Search) goesOn(sums api.GrepSums) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inPart = sums
}

// inArchive calls fn with the volumes that no node has, the newest first of each namespace. It takes the namespaces in turn, each time
// for twice as many volumes, so that the newest of all are searched before a budget is used up.
func (s *Search) inArchive(ctx context.Context, parts []*source, fn func(*source, *Entry) error) error {
	on := newOnNodes(s.list.sources)
	parts = slices.Clone(parts)
	for n := max(1, archivePage/max(1, len(parts))); len(parts) > 0; n = min(2*n, archivePage) {
		for _, part := range parts {
			if err := inPart(ctx, on, part, n, fn); err != nil {
				return err
			}
		}
		parts = slices.DeleteFunc(parts, func(part *source) bool { return part.ended })
	}
	return nil
}

// inPart calls fn with those of the next n volumes of a namespace that no node has.
func inPart(ctx context.Context, on *onNodes, part *source, n int, fn func(*source, *Entry) error) error {
	asking, cancel := context.WithTimeout(ctx, archiveTime)
	defer cancel()
	entries, err := part.next(asking, n)
	if err != nil {
		return err
	}
	part.seen = nil // which would hold all volumes of the archive in the end
	on.learn(ctx, entries)
	for _, e := range entries {
		if on.has(e) {
			continue
		}
		if err := fn(part, e); err != nil {
			return err
		}
	}
	return nil
}
