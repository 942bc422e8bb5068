package archived

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/gateway/uploads"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// sweepEvery is the time between two looks for what has ended, and firstSweep that until the first one, at most.
	sweepEvery = time.Hour
	firstSweep = 10 * time.Minute
	// mostOfOne bounds the pieces of a volume that are deleted in one sweep; the others go with the next one.
	mostOfOne = 10_000
	// mostDoomed bounds the volumes of a namespace whose pieces are deleted in one sweep: they are kept in memory until then.
	mostDoomed = 10_000
	// callLimit bounds a request of a sweep to the bucket, and mostFailed the namespaces in a row that fail: then the bucket is away.
	callLimit  = 30 * time.Second
	mostFailed = 10
)

// sweep looks for what has ended, again and again, until ctx ends.
func (a *Archive) sweep(ctx context.Context) {
	for pause := retry.Below(firstSweep); ; pause = retry.Around(sweepEvery) {
		if retry.Pause(ctx, pause) != nil {
			return
		}
		swept, err := a.Sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			a.cfg.Metrics.ArchiveSwept(gatewaymetrics.Failed)
			a.cfg.Log.Info("a search for what has ended in the archive has failed; it is done again in an hour", "indexes", swept.Indexes,
				"pieces", swept.Pieces, logkeys.Cause, volume.OneLine(err))
		default:
			a.cfg.Metrics.ArchiveSwept(gatewaymetrics.Done)
			if swept != (Swept{}) {
				a.cfg.Log.Info("deleted what has ended in the archive", "indexes", swept.Indexes, "pieces", swept.Pieces)
			}
		}
	}
}

// Swept is what a sweep has deleted.
type Swept struct{ Indexes, Pieces int }

// Sweep deletes the indexes whose time is over, and the pieces that have no index and were written more than a day ago. Where it fails
// in one namespace it goes on with the next one.
func (a *Archive) Sweep(ctx context.Context) (swept Swept, err error) {
	cluster, err := a.Cluster()
	if err != nil {
		return swept, err
	}
	var failed []error
	inRow := 0
	err = a.namespaces(ctx, cluster, func(uid string) error {
		s := &sweeping{archive: a, cluster: cluster, uid: uid, seed: maphash.MakeSeed(), swept: &swept}
		err := s.run(ctx)
		if err == nil {
			inRow = 0
			return nil
		}
		if len(failed) < mostFailed {
			failed = append(failed, fmt.Errorf("namespace %s: %w", uid, err))
		}
		if inRow++; inRow == mostFailed || ctx.Err() != nil {
			return errStop
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		failed = append(failed, err)
	}
	return swept, errors.Join(failed...)
}

// sweeping is a sweep of one namespace.
type sweeping struct {
	archive      *Archive
	cluster, uid string
	seed         maphash.Seed
	swept        *Swept
	// indexed are the hashes of the volumes that have an index: two of one hash keep the pieces of each other, which does no harm.
	indexed map[uint64]struct{}
	// doomed are the volumes whose pieces may go.
	doomed []form.Place
}

func (s *sweeping) run(ctx context.Context) error {
	if err := s.indexes(ctx, true); err != nil {
		return err
	}
	if err := s.pieces(ctx); err != nil || len(s.doomed) == 0 {
		return err
	}
	// An index that has come meanwhile keeps its pieces. One that was signed and is still to come has pieces that are younger: see uploads.
	if err := s.indexes(ctx, false); err != nil {
		return err
	}
	for _, place := range s.doomed {
		if _, ok := s.indexed[s.hash(place.ID)]; ok {
			continue
		}
		if err := s.delete(ctx, place); err != nil {
			return err
		}
	}
	return nil
}

func (s *sweeping) hash(id volume.ID) uint64 { return maphash.String(s.seed, string(id)) }

// page is a list that has to end in time: without an answer it would be the last one of this gateway.
func (a *Archive) page(ctx context.Context, q bucket.Query) (bucket.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return a.cfg.Bucket.List(ctx, q)
}

// inTime deletes a key, and does not wait longer than a page does.
func inTime(ctx context.Context, key string, remove func(context.Context, string) error) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return remove(ctx, key)
}

// list calls fn with all objects with a prefix.
func (s *sweeping) list(ctx context.Context, prefix string, fn func(bucket.Object) error) error {
	for q := (bucket.Query{Prefix: prefix}); ; {
		page, err := s.archive.page(ctx, q)
		if err != nil {
			return err
		}
		for _, o := range page.Objects {
			if err := fn(o); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		q.After = page.Last()
	}
}

// indexes notes which volumes have an index. With end it deletes those whose time is over. A key that cannot be read is that of a volume,
// too: a later version may have written it.
func (s *sweeping) indexes(ctx context.Context, end bool) error {
	s.indexed = map[uint64]struct{}{}
	now := s.archive.now()
	return s.list(ctx, form.IndexPrefix(s.cluster, s.uid), func(o bucket.Object) error {
		id, _, ok := form.IndexID(o.Key)
		if !ok {
			return nil
		}
		_, v, err := form.ParseIndexKey(o.Key)
		if err != nil || !end || v.ExpiresAt.After(now) {
			s.indexed[s.hash(id)] = struct{}{}
			return nil
		}
		if err := inTime(ctx, o.Key, s.archive.delete); err != nil {
			return err
		}
		s.swept.Indexes++
		s.archive.cfg.Metrics.ArchiveDeleted(gatewaymetrics.Index)
		return nil
	})
}

// pieces notes the volumes whose pieces may go. The pieces of a volume follow one another.
func (s *sweeping) pieces(ctx context.Context) error {
	var at form.Place
	var newest time.Time
	before := s.archive.now().Add(-uploads.Abandoned)
	flush := func() error {
		_, ok := s.indexed[s.hash(at.ID)]
		if at.ID == "" || ok || !newest.Before(before) {
			return nil
		}
		if s.doomed = append(s.doomed, at); len(s.doomed) == mostDoomed {
			return errStop // the others go with the next sweep
		}
		return nil
	}
	err := s.list(ctx, form.PiecesPrefix(s.cluster, s.uid), func(o bucket.Object) error {
		place, _, _, err := form.ParsePieceKey(o.Key)
		if err != nil {
			return nil // it is none of ours
		}
		if place != at {
			if err := flush(); err != nil {
				return err
			}
			at, newest = place, time.Time{}
		}
		if o.Modified.After(newest) {
			newest = o.Modified
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// delete deletes the pieces of a volume, unless one has come since they were looked at, which may be hours ago: the node copies the volume.
func (s *sweeping) delete(ctx context.Context, place form.Place) error {
	before := s.archive.now().Add(-uploads.Abandoned)
	each := func(fn func(bucket.Object) error) error {
		return s.list(ctx, place.Prefix(), func(o bucket.Object) error {
			switch of, _, _, err := form.ParsePieceKey(o.Key); {
			case err != nil || of != place:
				return nil
			case !o.Modified.Before(before):
				return errStop
			}
			return fn(o)
		})
	}
	err := each(func(bucket.Object) error { return nil })
	if errors.Is(err, errStop) {
		return nil
	}
	if err != nil {
		return err
	}
	left := mostOfOne
	err = each(func(o bucket.Object) error {
		if left--; left < 0 {
			return errStop
		}
		if err := inTime(ctx, o.Key, s.archive.cfg.Bucket.Delete); err != nil {
			return err
		}
		s.swept.Pieces++
		s.archive.cfg.Metrics.ArchiveDeleted(gatewaymetrics.Piece)
		return nil
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}
