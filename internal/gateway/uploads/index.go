package uploads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
)

// index answers an ask for an index.
func (u *Uploads) index(ctx context.Context, node string, a *api.UploadAsk, answer *api.UploadAnswer) error {
	i := a.Index
	if _, err := archived.ParseSum(i.SHA256); err != nil {
		return err
	}
	retained := i.Shown.RetainedAt
	switch now := u.now(); {
	case i.Length <= 0, i.Length > archived.MaxIndex, i.Pieces <= 0, i.Pieces > archived.MaxPieces:
		return fmt.Errorf("there is no index of %d bytes with %d pieces", i.Length, i.Pieces)
	case retained == nil:
		return errors.New("it does not say when the volume was retained")
	case retained.Before(now.Add(-mostPast)), retained.After(now.Add(mostAhead)):
		// Not for good: clocks are set.
		return fmt.Errorf("the volume cannot have been retained at %s, since it is %s here; look at the clock of the node: %w",
			retained.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), errLater)
	}
	place, owner, err := u.place(ctx, node, a)
	if err != nil {
		return err
	}
	known, err := u.cfg.Indexes.Indexes(ctx, place.NamespaceUID, place.ID, *retained)
	if err != nil {
		return err
	}
	for _, v := range known {
		if u.current(&v, node, a) {
			answer.There, answer.Until = true, *v.ExpiresAt
			return nil
		}
	}
	before, err := u.complete(ctx, place, i.Pieces, *retained)
	if err != nil {
		return err
	}
	if before {
		if known, err = u.cfg.Indexes.Indexes(ctx, place.NamespaceUID, place.ID, time.Time{}); err != nil {
			return err
		}
	}
	// The node has the volume as it is now. An index of what it was before would be shown in its stead.
	for _, v := range known {
		if v.PodUID == a.PodUID && v.Node == node {
			if err := u.cfg.Indexes.Forget(ctx, v); err != nil {
				return fmt.Errorf("delete the index of an earlier copy: %w", err)
			}
		}
	}
	// Whole seconds, as a key has them.
	until := u.now().Add(u.cfg.Lifespan).Truncate(time.Second)
	key, err := archived.IndexKey(place.Cluster, shown(node, a, owner, until))
	if err != nil {
		return err
	}
	if err := u.sign(key, i.Length, i.SHA256, answer); err != nil {
		return err
	}
	answer.Until = until
	u.cfg.Indexes.Expect(place.NamespaceUID)
	return nil
}

// current reports whether an index is that of what a node has: the volume may have been published once more since it was
// copied, and logs may have been kept anew.
func (u *Uploads) current(v *api.Volume, node string, a *api.UploadAsk) bool {
	said := a.Index.Shown
	switch {
	case v.PodUID != a.PodUID, v.Node != node, !u.now().Before(*v.ExpiresAt):
		return false
	case said.PublishedAt != nil && v.RetainedAt.Before(*said.PublishedAt):
		return false
	}
	return said.Bytes == nil || v.Bytes == nil || *said.Bytes == *v.Bytes
}

// shown is what the key of an index says. Whose the volume is, and where it was, is not what the node says; when it was
// published, how its pod ended and how large it is, is. Its name in the pod can be checked: the ID is made of it.
func shown(node string, a *api.UploadAsk, owner api.Owner, until time.Time) api.Volume {
	said := a.Index.Shown
	name := said.Volume
	if volume.KubeletID(volume.PodUID(a.PodUID), name) != volume.ID(a.ID) {
		name = ""
	}
	return api.Volume{
		ID: a.ID, Namespace: a.Namespace, Pod: a.Pod, PodUID: a.PodUID, Volume: name,
		ServiceAccount: volume.ObjectName(said.ServiceAccount), Owner: &owner, Node: node, Phase: api.PhaseArchived,
		PublishedAt: said.PublishedAt, RetainedAt: said.RetainedAt, ExpiresAt: &until, Bytes: said.Bytes, Inodes: said.Inodes,
		Outcome: said.Outcome,
	}
}

// mostListed bounds how many pages of a list one index may cost: twice what the pieces of the longest have, since pieces of an
// upload that was begun anew may be there, too.
const mostListed = 2 * (archived.MaxPieces/bucket.MostKeys + 1)

// complete returns nil if all pieces of an index are in the bucket. before: there are such as only an earlier copy of the volume can
// have, or a copy that was begun anew: others than the index needs, or one from before the volume was retained.
func (u *Uploads) complete(ctx context.Context, place archived.Place, pieces int, retained time.Time) (before bool, err error) {
	next, newest := 0, time.Time{}
	q := bucket.Query{Prefix: place.Prefix()}
	for range mostListed {
		page, err := u.cfg.Bucket.List(ctx, q)
		if err != nil {
			return false, err
		}
		for _, o := range page.Objects {
			_, number, _, err := archived.ParsePieceKey(o.Key)
			if err != nil || o.Size <= 0 || number > next {
				continue
			}
			before = before || number != next || number >= pieces || o.Modified.Before(retained)
			if number == next {
				next++
			}
			if o.Modified.After(newest) {
				newest = o.Modified
			}
		}
		if next >= pieces && before || !page.More {
			break
		}
		q.After = page.Last()
	}
	switch {
	case next < pieces:
		return false, fmt.Errorf("piece %d of %d is not in the bucket, and an index comes last; upload it: %w", next, pieces, errLater)
	case u.now().Sub(newest) > oldest:
		return false, fmt.Errorf("the pieces are older than %s and may be deleted at any moment; upload them again: %w", oldest, errLater)
	}
	return before, nil
}
