package archived

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
)

// mostPages bounds how many pages of keys one page of a list looks at: where few volumes are selected it may be shorter than its limit,
// and not be the last.
const mostPages = 10

// mostOfInstant bounds the volumes of one instant in memory. Instants are nanoseconds: more of one than that are made up, and those with
// the highest IDs are left out.
const mostOfInstant = mostPages * bucket.MostKeys

// mostListed is how many volumes a page has at most: with one key before them, and one behind, they are one page of keys.
const mostListed = bucket.MostKeys - 2

// tenant has the archived volumes of one namespace.
type tenant struct {
	archive *Archive
	uid     string
}

// Node is the name that the fleet knows it by.
func (t *tenant) Node() string { return fleet.Archived }

// Gone returns nothing: what was deleted is remembered by nodes.
func (t *tenant) Gone(context.Context, fleet.Reader, api.GoneQuery) (api.GoneList, error) {
	return api.GoneList{}, nil
}

// List returns a page of them, the one that was retained last first.
func (t *tenant) List(ctx context.Context, _ fleet.Reader, q api.Query) (api.VolumeList, error) {
	s := selectionOf(q)
	s.Limit = min(s.Limit, mostListed)
	if q.Continue != "" {
		before, ok := api.ParseKey(q.Continue)
		if !ok {
			return api.VolumeList{}, api.NewError(api.BadRequest, "%.300q is no place in a list", q.Continue)
		}
		s.Before = before
	}
	if err := t.archive.reachable(); err != nil {
		return api.VolumeList{}, err
	}
	list := api.VolumeList{Items: []api.Volume{}}
	// The keys are in the order of lists, except that among those of one instant the IDs ascend.
	last := s.Before
	first := 0
	if s.PodName == "" && s.PodPrefix == "" && s.Pod == "" && s.Job == "" && s.OwnerKind == "" {
		first = s.Limit + 2 // one that was the last of the page before, and one to see whether there are more
	}
	err := t.each(ctx, s.Before, s.Since, first, func(instant []api.Volume, more bool) bool {
		for _, v := range instant {
			r := recordOf(v)
			if !s.Selects(r) {
				if s.Before.IsZero() || r.Key().Compare(s.Before) < 0 {
					last = r.Key()
				}
				continue
			}
			if len(list.Items) == s.Limit {
				list.Continue = api.FormatKey(last)
				return false
			}
			list.Items, last = append(list.Items, v), r.Key()
		}
		if more || len(list.Items) == s.Limit {
			list.Continue = api.FormatKey(last) // perhaps of an empty page
			return false
		}
		return true
	})
	t.archive.answered(err)
	if err != nil {
		return api.VolumeList{}, err
	}
	return list, nil
}

// each calls fn with the volumes of each instant, the newest first, from a place in the list on, until it returns false or they
// are older than since. The first request is for as many keys as first says, if that is not 0. more: it has looked at as many
// keys as one page of a list does.
func (t *tenant) each(
	ctx context.Context, from volume.Key, since time.Time, first int, fn func(instant []api.Volume, more bool) bool,
) error {
	cluster, err := t.archive.Cluster()
	if err != nil {
		return err
	}
	q := bucket.Query{Prefix: form.IndexPrefix(cluster, t.uid), Most: first}
	if !from.IsZero() {
		q.After = form.IndexStart(cluster, t.uid, from.Unpublished)
	}
	var instant []api.Volume
	flush := func(more bool) bool {
		if len(instant) == 0 {
			return true
		}
		slices.SortFunc(instant, func(a, b api.Volume) int { return strings.Compare(b.ID, a.ID) })
		// Of two indexes of one volume, which should not be, the first is as good as the second.
		same := func(a, b api.Volume) bool { return a.ID == b.ID }
		going := fn(slices.CompactFunc(instant, same), more)
		instant = nil
		return going
	}
	for pages := 1; ; pages++ {
		page, err := t.archive.cfg.Bucket.List(ctx, q)
		if err != nil {
			return err
		}
		skipTo := ""
		for _, o := range page.Objects {
			v, err := t.archive.volumeOf(o)
			if err != nil || v.Owner.NamespaceUID != t.uid {
				t.archive.cfg.Metrics.KeysDropped(1)
				continue
			}
			if v.RetainedAt.Before(since.Round(0)) {
				flush(false)
				return nil
			}
			if len(instant) > 0 && !v.RetainedAt.Equal(*instant[0].RetainedAt) && !flush(pages > mostPages) {
				return nil
			}
			if len(instant) == mostOfInstant {
				t.archive.cfg.Metrics.KeysDropped(1)
				skipTo = form.IndexStart(cluster, t.uid, v.RetainedAt.Add(-1))
				continue
			}
			instant = append(instant, v)
		}
		if !page.More {
			flush(false)
			return nil
		}
		q.After, q.Most = max(page.Last(), skipTo), 0
	}
}

// volumeOf returns the volume whose index an object is.
func (a *Archive) volumeOf(o bucket.Object) (api.Volume, error) {
	cluster, v, err := form.ParseIndexKey(o.Key)
	if err == nil {
		err = a.ours(cluster)
	}
	if err != nil {
		return v, err
	}
	if name, ok := a.cfg.Namespaces.OfUID(v.Owner.NamespaceUID); ok {
		v.Namespace = name
	}
	// What one may ask the API for by its name.
	if v.Pod == "" || volume.ObjectName(v.Pod) != v.Pod || v.Namespace == "" || v.Node == "" {
		return v, form.ErrForm
	}
	if volume.KubeletID(volume.PodUID(v.PodUID), v.Volume) != volume.ID(v.ID) {
		v.Volume = "" // it did not fit into the key
	}
	v.Archived = o.Key
	a.found.put(v.Owner.NamespaceUID, resource.Name(v), v)
	return v, nil
}

// recordOf is what lists select by.
func recordOf(v api.Volume) volume.Record {
	owner, _ := v.Owner.Parse() // it is Confirmed
	r := volume.Record{
		ID: volume.ID(v.ID), Pod: volume.PodUID(v.PodUID), Namespace: v.Namespace, PodName: v.Pod, Phase: volume.Retained,
		Unpublished: *v.RetainedAt, Owner: owner,
	}
	if v.PublishedAt != nil {
		r.Published = *v.PublishedAt
	}
	return r
}

// selectionOf is a query without its place.
func selectionOf(q api.Query) volume.Selection {
	return volume.Selection{
		Namespace: q.Namespace, Tenancy: q.Tenancy, NoNamespace: q.NoNamespace, PodName: q.Pod, PodPrefix: q.PodPrefix,
		Pod: volume.PodUID(q.PodUID), Job: q.Job, OwnerKind: q.OwnerKind, Since: q.Since, Limit: cmp.Or(q.Limit, api.StandardVolumes),
	}
}
