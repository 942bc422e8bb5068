package fakedriver

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// serveList answers with a page of the retained volumes, the newest first.
func (r *run) serveList(w http.ResponseWriter, q *http.Request) {
	values := q.URL.Query()
	limit, err := strconv.Atoi(cmp.Or(values.Get("limit"), "500"))
	if err != nil || limit < 1 {
		fail(w, badRequest(api.BadParameter, "bad limit"))
		return
	}
	all := r.disk.all(false)
	switch r.cfg.Bug {
	case ListsPublished:
		for _, v := range r.disk.all(true) {
			if r.used(v) {
				all = append(all, v)
			}
		}
	case ListsStale:
		all = append(all, r.stale()...)
	}
	slices.SortFunc(all, func(a, b record) int { return cmp.Compare(key(b), key(a)) })
	page := api.VolumeList{Items: []api.Volume{}}
	before, namespace := values.Get("before"), values.Get("namespace")
	var last record
	for _, v := range all {
		if v.deleting && r.cfg.Bug != ListsStale {
			continue
		}
		if before != "" && !r.follows(key(v), before) || namespace != "" && v.namespace != namespace && r.cfg.Bug != ListsOthers {
			continue
		}
		if len(page.Items) == limit {
			if page.Continue = key(last); r.cfg.Bug == ListsForgets {
				page.Continue = key(v)
			}
			break
		}
		page.Items, last = append(page.Items, r.describe(v)), v
	}
	answer(w, page)
}

// follows reports whether a volume comes behind the end of the page before.
func (r *run) follows(key, before string) bool {
	return key < before || r.cfg.Bug == ListsTwice && key == before
}

// key orders the volumes.
func key(v record) string { return fmt.Sprintf("%020d.%s", v.unpublished.UnixNano(), v.id) }

func (r *run) describe(v record) api.Volume {
	d := api.Volume{ID: v.id, Namespace: v.namespace, Pod: v.podName, PodUID: v.pod, Phase: "Retained"}
	if v.published && r.cfg.Bug != ListsPublished {
		d.Phase = "Published"
	}
	expires := v.unpublished.Add(r.asked(v))
	if expires.Before(v.pinned) {
		expires = v.pinned
	}
	offset := r.wallClock()
	if r.cfg.Bug == ShowsOldClock && !v.orphan {
		offset = v.wall.Sub(v.unpublished)
	}
	at, until := v.unpublished.Add(offset), expires.Add(offset)
	d.RetainedAt, d.ExpiresAt = &at, &until
	return d
}

// staleFor is how long a driver lists what is gone, if that is the bug.
const staleFor = 4 * time.Second

// stale are volumes that are gone for some time.
func (r *run) stale() []record {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	r.former = slices.DeleteFunc(r.former, func(f former) bool { return time.Since(f.gone) > staleFor })
	var list []record
	for _, f := range r.former {
		list = append(list, f.record)
	}
	return list
}

// former is a volume that is gone.
type former struct {
	record record
	gone   time.Time
}

// serveVolume describes a volume.
func (r *run) serveVolume(w http.ResponseWriter, q *http.Request) {
	v, ok := r.disk.get(q.PathValue("id"))
	if !ok {
		fail(w, failed(http.StatusNotFound, api.NotFound, "there is no such volume"))
		return
	}
	answer(w, r.describe(v))
}
