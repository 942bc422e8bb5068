package archived

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// mostRecent is how many volumes are remembered by their names. Each takes some 2 KiB.
	mostRecent = 8192
	// searching is how many namespaces are looked through at once.
	searching = 8
	// clocks is by how much the clock of a node is adjusted at most, between two times that it says when a volume was retained.
	clocks = time.Hour
)

// Find returns the volume with a name; [fleet.ErrNotFound] if there is none in the namespaces that are selected.
func (a *Archive) Find(ctx context.Context, w fleet.Where, name string) (api.Volume, error) {
	uids := a.selected(w)
	for _, uid := range uids {
		v, ok := a.found.get(uid, name)
		if !ok {
			continue
		}
		switch _, err := a.cfg.Bucket.Head(ctx, v.Archived); {
		case err == nil:
			return v, nil
		case !errors.Is(err, bucket.ErrNotFound):
			return api.Volume{}, err
		}
		a.found.drop(uid, name)
	}
	return a.search(ctx, uids, name)
}

// search looks through namespaces for a name.
func (a *Archive) search(ctx context.Context, uids []string, name string) (found api.Volume, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var running sync.WaitGroup
	err = fleet.ErrNotFound
	slots := make(chan struct{}, searching)
	for _, uid := range uids {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			v, failed := a.searchIn(ctx, uid, name)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case failed == nil:
				found, err = v, nil
				cancel()
			case err != nil && !errors.Is(failed, fleet.ErrNotFound):
				err = failed
			}
		})
	}
	running.Wait()
	return found, err
}

// searchIn looks through one namespace for a name.
func (a *Archive) searchIn(ctx context.Context, uid, name string) (found api.Volume, err error) {
	err = fleet.ErrNotFound
	listed := (&tenant{archive: a, uid: uid}).each(ctx, volume.Key{}, time.Time{}, 0, func(instant []api.Volume, _ bool) bool {
		for _, v := range instant {
			if resource.Name(v) == name {
				found, err = v, nil
				return false
			}
		}
		return true
	})
	if listed != nil {
		return api.Volume{}, listed
	}
	return found, err
}

// Indexes returns a volume as the keys of its indexes show it, with those keys in Archived: of what was retained about then, or with
// a zero time of all.
func (a *Archive) Indexes(ctx context.Context, namespaceUID string, id volume.ID, retained time.Time) (found []api.Volume, err error) {
	cluster, err := a.Cluster()
	if err != nil {
		return nil, err
	}
	q, end := bucket.Query{Prefix: form.IndexPrefix(cluster, namespaceUID)}, ""
	if !retained.IsZero() {
		q.After = form.IndexStart(cluster, namespaceUID, retained.Add(clocks))
		end = form.IndexStart(cluster, namespaceUID, retained.Add(-clocks))
	}
	for {
		page, err := a.cfg.Bucket.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Objects {
			if of, _, ok := form.IndexID(o.Key); !ok || of != id {
				continue
			}
			if _, v, err := form.ParseIndexKey(o.Key); err == nil {
				v.Archived = o.Key
				found = append(found, v)
			}
		}
		if !page.More || end != "" && page.Last() > end {
			return found, nil
		}
		q.After = page.Last()
	}
}

// Forget deletes what the archive has of a volume. It returns nil once that is listed no more, or if there was none. Its error
// wraps [fleet.ErrArchive].
func (a *Archive) Forget(ctx context.Context, v api.Volume) error {
	if err := a.forget(ctx, v); err != nil {
		return fmt.Errorf("%w, and nothing was deleted there: %w", fleet.ErrArchive, err)
	}
	return nil
}

func (a *Archive) forget(ctx context.Context, v api.Volume) error {
	if v.Archived != "" {
		return a.delete(ctx, v.Archived)
	}
	if v.Owner == nil || v.Owner.Verdict != volume.Confirmed.String() || v.RetainedAt == nil || !volume.ID(v.ID).FromKubelet() {
		return nil // such a volume is not archived
	}
	other := func(copied api.Volume) bool { return copied.PodUID != v.PodUID || copied.Node != v.Node }
	copies, err := a.Indexes(ctx, v.Owner.NamespaceUID, volume.ID(v.ID), *v.RetainedAt)
	copies = slices.DeleteFunc(copies, other)
	if err == nil && len(copies) == 0 && v.ArchivedUntil != nil {
		// There is one, and the node's clock was adjusted by more.
		copies, err = a.Indexes(ctx, v.Owner.NamespaceUID, volume.ID(v.ID), time.Time{})
		copies = slices.DeleteFunc(copies, other)
	}
	for i := 0; err == nil && i < len(copies); i++ {
		err = a.delete(ctx, copies[i].Archived)
	}
	return err
}

// delete deletes an index of this cluster. Its pieces go with a later sweep.
func (a *Archive) delete(ctx context.Context, key string) error {
	cluster, v, err := form.ParseIndexKey(key)
	if err == nil {
		err = a.ours(cluster)
	}
	if err == nil {
		err = a.cfg.Bucket.Delete(ctx, key)
	}
	if err == nil {
		a.found.drop(v.Owner.NamespaceUID, resource.Name(v))
	}
	return err
}

// recent remembers the volumes that were listed or found last, at least about half as many as it may. It has two generations, as
// the memory of package owners.
type recent struct {
	most int

	mu         sync.Mutex
	young, old map[named]api.Volume
	// namespaces are the names of namespaces by their UIDs, at most mostNamespaces; empty where two volumes say two.
	namespaces map[string]string
}

// named is a volume by its name in the namespace with a UID.
type named struct{ uid, name string }

func newRecent(most int) *recent {
	return &recent{most: most, young: map[named]api.Volume{}, namespaces: map[string]string{}}
}

func (r *recent) get(uid, name string) (api.Volume, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.young[named{uid, name}]
	if !ok {
		v, ok = r.old[named{uid, name}]
	}
	return v, ok
}

func (r *recent) put(uid, name string, v api.Volume) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.young) >= r.most/2 {
		r.young, r.old = map[named]api.Volume{}, r.young
	}
	r.young[named{uid, name}] = v
	switch was, ok := r.namespaces[uid]; {
	case ok && was != v.Namespace:
		r.namespaces[uid] = ""
	case !ok && len(r.namespaces) < mostNamespaces:
		r.namespaces[uid] = v.Namespace
	}
}

// differs reports whether the namespace with a UID is known to have another name: no namespace is ever renamed.
func (r *recent) differs(uid, namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.namespaces[uid]
	return known != "" && known != namespace
}

func (r *recent) drop(uid, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.young, named{uid, name})
	delete(r.old, named{uid, name})
}
