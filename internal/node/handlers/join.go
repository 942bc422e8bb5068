package handlers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
)

// Inline are the inline volumes of a node: for its handlers, and for what it tells a gateway.
type Inline interface {
	Volumes
	Holdings(context.Context) ([]volume.Holding, error)
	Own(context.Context, volume.ID, volume.PodUID, volume.Owner) error
	// Pace is that of their readings.
	Pace(context.Context) error
}

// Claims are the volumes of deleted claims that are kept in pools on the node's disks.
type Claims interface {
	// Retained describes them all, the one that was retained last first. What it returns is not changed.
	Retained(context.Context) ([]volume.Description, error)
	// Read begins to read one. Its errors are those of Volumes.
	Read(context.Context, volume.ID) (*files.Reading, error)
}

// Joined are the inline volumes of a node and those of its deleted claims. What is not about retained volumes, and
// what a person may do with one, is about the inline ones alone.
type Joined struct {
	Inline
	// Claims returns nil while there are none, because the daemon has no pools or has just started.
	Claims func() Claims
}

// retained returns the claims' volumes. They are left out while they cannot be listed: the inline ones do not wait.
func (j Joined) retained(ctx context.Context) []volume.Description {
	claims := j.Claims()
	if claims == nil {
		return nil
	}
	all, err := claims.Retained(ctx)
	if err != nil {
		return nil
	}
	return all
}

// find returns a claim's volume.
func (j Joined) find(ctx context.Context, id volume.ID) (volume.Description, bool) {
	for _, d := range j.retained(ctx) {
		if d.Record.ID == id {
			return d, true
		}
	}
	return volume.Description{}, false
}

// List returns a page of the retained volumes, the newest first. Where it ends before the last inline one, so do the
// claims' volumes.
func (j Joined) List(ctx context.Context, s volume.Selection) (volume.Page, error) {
	page, err := j.Inline.List(ctx, s)
	if err != nil {
		return page, err
	}
	all := slices.Clone(page.Volumes)
	for _, d := range j.retained(ctx) {
		if !page.Next.IsZero() && d.Record.Key().Compare(page.Next) < 0 || len(all) > len(page.Volumes)+s.Limit {
			break // the others are older still
		}
		if s.SelectsDescribed(d) {
			all = append(all, d)
		}
	}
	if len(all) == len(page.Volumes) {
		return page, nil
	}
	slices.SortFunc(all, func(a, b volume.Description) int { return b.Record.Key().Compare(a.Record.Key()) })
	if len(all) > s.Limit {
		all = all[:s.Limit]
		page.Next = all[len(all)-1].Record.Key()
	}
	page.Volumes = all
	return page, nil
}

// Describe describes a volume: an inline one in whatever phase it is, a claim's one that is retained.
func (j Joined) Describe(ctx context.Context, id volume.ID) (volume.Description, error) {
	d, err := j.Inline.Describe(ctx, id)
	if errors.Is(err, volume.ErrNotFound) {
		if kept, ok := j.find(ctx, id); ok {
			return kept, nil
		}
	}
	return d, err
}

// Read begins to read a retained volume.
func (j Joined) Read(ctx context.Context, id volume.ID) (*files.Reading, error) {
	reading, err := j.Inline.Read(ctx, id)
	claims := j.Claims()
	if !errors.Is(err, volume.ErrNotFound) || claims == nil {
		return reading, err
	}
	if reading, err = claims.Read(ctx, id); err == nil && reading.Pace == nil {
		reading.Pace = j.Pace
	}
	return reading, err
}

// Holdings counts the retained volumes by namespace.
func (j Joined) Holdings(ctx context.Context) ([]volume.Holding, error) {
	all, err := j.Inline.Holdings(ctx)
	kept := j.retained(ctx)
	if err != nil || len(kept) == 0 {
		return all, err
	}
	type key struct {
		namespace, uid string
		verdict        volume.Verdict
	}
	sums := make(map[key]volume.Holding, len(all)+1)
	for _, h := range all {
		sums[key{h.Namespace, h.NamespaceUID, h.Verdict}] = h
	}
	for _, d := range kept {
		r := d.Record
		of, at := key{r.Namespace, r.Owner.NamespaceUID, r.Owner.Verdict}, r.Key().Unpublished
		h, ok := sums[of]
		if !ok {
			h = volume.Holding{Namespace: of.namespace, NamespaceUID: of.uid, Verdict: of.verdict, Newest: at, Oldest: at}
		}
		h.Volumes++
		if at.After(h.Newest) {
			h.Newest = at
		}
		if at.Before(h.Oldest) {
			h.Oldest = at
		}
		sums[of] = h
	}
	return slices.Collect(maps.Values(sums)), nil
}

// ofClaim says what to do with a claim's volume, which is not kept or deleted as inline ones are. It returns err for
// any other.
func (j Joined) ofClaim(ctx context.Context, id volume.ID, err error) error {
	if !errors.Is(err, volume.ErrNotFound) {
		return err
	}
	if _, ok := j.find(ctx, id); !ok {
		return err
	}
	return volume.Invalid("volume", string(id)+" is that of a deleted claim, which is kept as its PoolVolume says: an administrator "+
		"changes spec.lifespan there, or deletes it with kubectl delete poolvolume "+string(id))
}

// Pin keeps an inline volume.
func (j Joined) Pin(ctx context.Context, id volume.ID, until time.Time, by, why string) (volume.Description, error) {
	d, err := j.Inline.Pin(ctx, id, until, by, why)
	return d, j.ofClaim(ctx, id, err)
}

// Unpin takes back what a person has decided about an inline volume.
func (j Joined) Unpin(ctx context.Context, id volume.ID, by string) (volume.Description, error) {
	d, err := j.Inline.Unpin(ctx, id, by)
	return d, j.ofClaim(ctx, id, err)
}

// Release lets an inline volume go.
func (j Joined) Release(ctx context.Context, id volume.ID, by, why string) (volume.Description, error) {
	d, err := j.Inline.Release(ctx, id, by, why)
	return d, j.ofClaim(ctx, id, err)
}

// Purge ends the lifespan of an inline volume.
func (j Joined) Purge(ctx context.Context, id volume.ID, by, why string) error {
	return j.ofClaim(ctx, id, j.Inline.Purge(ctx, id, by, why))
}
