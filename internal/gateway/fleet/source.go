package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// source is one query to one node, page after page. One goroutine at a time uses it.
type source struct {
	fleet  *Fleet
	reader Reader
	keep   func(Entry) bool
	node   Node
	name   string
	// archived: the node stands for a part of the archive.
	archived bool
	// query selects what it asks for, except for the place and the limit.
	query api.Query
	// frontier is how far down the node has answered. Below it there may be more, unless the source
	// has ended.
	frontier place
	ended    bool
	// newest is the place below which all volumes are that the node says it holds; the top if it does not say. It counts until the
	// source is asked.
	newest place
	// answered: the node has answered at least once. failure is why it has not the last time.
	answered bool
	failure  string
	// seen are the IDs of all volumes that it has answered with.
	seen map[string]bool
	// kept counts the entries that are in the list.
	kept int
}

// next asks the node for n volumes below the frontier. It returns those that are in the list, the
// newest first. After an error the frontier is where it was.
func (s *source) next(ctx context.Context, n int) ([]*Entry, error) {
	q := s.query
	q.Continue, q.Limit = s.frontier.below(s.ranks()), n
	page, err := untilFree(ctx, func() (api.VolumeList, error) { return s.node.List(ctx, s.reader, q) })
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	end, ended, err := s.end(page, n)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	entries := s.sift(page.Items, end, ended)
	s.frontier, s.ended, s.answered = end, ended, true
	s.kept += len(entries)
	return entries, nil
}

// untilFree asks a node, and again if the node says that it answers too many others right now: all
// replicas of the gateway may have asked it at the same moment.
func untilFree[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for {
		page, err := ask()
		if busy := (*api.Error)(nil); !errors.As(err, &busy) || busy.Reason != api.TooManyRequests {
			return page, err
		}
		pause, cancel := context.WithTimeout(ctx, busyPause/2+rand.N(busyPause))
		<-pause.Done()
		cancel()
		if ctx.Err() != nil {
			return page, err
		}
	}
}

// fail remembers why the node has not answered.
func (s *source) fail(ctx context.Context, err error) error {
	s.failure = Failed
	if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		s.failure = NoAnswer
	}
	return fmt.Errorf("node %s: %w", s.name, err)
}

// end returns how far down a page reaches. A page that does not lead down is an error: the list
// would never end.
func (s *source) end(page api.VolumeList, n int) (end place, ended bool, err error) {
	if len(page.Items) > n {
		return place{}, false, fmt.Errorf("it answered with %d volumes, and was asked for %d", len(page.Items), n)
	}
	if page.Continue == "" {
		return place{}, true, nil
	}
	key, ok := api.ParseKey(page.Continue)
	end = place{key.Unpublished, string(key.ID), s.name}
	if s.archived {
		end.node = "" // it is below all entries with that time and ID, whatever their node is
	}
	if !ok || end.compare(s.frontier) >= 0 {
		return place{}, false, fmt.Errorf("its page does not lead on: continue=%.300q", page.Continue)
	}
	return end, false, nil
}

// sift returns those of a page's volumes that are in the list.
func (s *source) sift(volumes []api.Volume, end place, ended bool) []*Entry {
	entries := make([]*Entry, 0, len(volumes))
	var lies int
	var why error
	above := s.frontier
	if s.seen == nil {
		s.seen = make(map[string]bool, len(volumes))
	}
	for _, v := range volumes {
		err := s.validate(&v)
		if err == nil {
			at := placeOf(&v)
			switch {
			case at.compare(above) >= 0, !ended && at.compare(end) < 0:
				err = errors.New("it is out of order")
			case s.seen[v.ID]:
				err = fmt.Errorf("%q is there twice", v.ID)
			default:
				above = at
				s.seen[v.ID] = true
			}
		}
		if err != nil {
			lies, why = lies+1, err
			continue
		}
		if e, ok := s.judge(v); ok && (s.keep == nil || s.keep(*e)) {
			entries = append(entries, e)
		}
	}
	if lies > 0 {
		s.fleet.dropped(s.name, lies, why)
	}
	return entries
}

// ranks is the node that decides between volumes with the same time and ID. A copy in the archive is the same volume.
func (s *source) ranks() string {
	if s.archived {
		return "\xff"
	}
	return s.name
}

func (s *source) validate(v *api.Volume) error {
	if s.archived {
		return validateArchived(v, s.query)
	}
	return validateVolume(v, s.name, s.query)
}

// judge makes an entry of a volume; false if the reader may not see it.
func (s *source) judge(v api.Volume) (*Entry, bool) {
	if s.archived {
		return s.fleet.judgeArchived(v, s.reader, s.query.Tenancy)
	}
	return s.fleet.judge(v, s.reader, s.query.Tenancy)
}

// dropped counts entries that cannot be true.
func (f *Fleet) dropped(node string, entries int, why error) {
	if f.cfg.Dropped != nil {
		f.cfg.Dropped(node, entries)
	}
	f.cfg.Log.Info("a node answered with volumes that cannot be true; they are left out",
		logkeys.Node, node, "volumes", entries, logkeys.Cause, volume.OneLine(why))
}
