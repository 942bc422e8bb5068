package fakedriver

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// serveKeep pins a retained volume, or takes back what a person decided.
func (r *run) serveKeep(w http.ResponseWriter, q *http.Request) {
	var keep api.Keep
	if err := json.NewDecoder(q.Body).Decode(&keep); err != nil {
		fail(w, badRequest(api.BadParameter, err.Error()))
		return
	}
	id := q.PathValue("id")
	_, reader, err := r.read(id)
	if err != nil {
		fail(w, err)
		return
	}
	r.stopReading(id, reader)
	r.hold(w, id, func(v *record) {
		v.pinned, v.released = time.Time{}, time.Time{}
		if keep.KeepUntil != nil && r.cfg.Bug != PinsNothing {
			v.pinned = *keep.KeepUntil
		}
	})
}

// hold notes what a person decided about a retained volume, and answers.
func (r *run) hold(w http.ResponseWriter, id string, decide func(*record)) {
	leave, err := r.enter(id)
	if err != nil {
		fail(w, failed(http.StatusConflict, api.Conflict, "the volume changes"))
		return
	}
	defer leave()
	v, ok := r.disk.get(id)
	if !ok || v.published || v.deleting {
		fail(w, failed(http.StatusNotFound, api.NotFound, "there is no retained volume "+id))
		return
	}
	decide(&v)
	r.disk.put(v)
	answer(w, r.describe(v))
}

// serveRemove removes a retained volume.
func (r *run) serveRemove(w http.ResponseWriter, q *http.Request) {
	id := q.PathValue("id")
	v, reader, err := r.read(id)
	if err != nil {
		fail(w, err)
		return
	}
	r.stopReading(id, reader)
	if q.URL.Query().Has("grace") {
		r.hold(w, id, func(v *record) {
			if v.released = time.Now(); r.cfg.Bug == ReleasesNothing {
				v.released = time.Time{}
			}
		})
		return
	}
	switch r.cfg.Bug {
	case RemovesNothing:
	case RemovesAnother:
		all := r.disk.all(false)
		if next := all[len(all)-1]; next.id != id {
			r.delete(next, "expired")
		}
		fallthrough
	default:
		r.delete(v, "purged")
		if _, there := r.disk.get(id); there {
			fail(w, failed(http.StatusConflict, api.Conflict, "something is mounted in the volume, or it changes"))
			return
		}
	}
	w.WriteHeader(http.StatusOK)
}

// bury remembers a volume that is gone.
func (r *run) bury(v record, reason string) {
	r.admin.mu.Lock()
	r.former = append(r.former, former{v, time.Now()})
	r.admin.mu.Unlock()
	stone := api.GoneVolume{Volume: r.describe(v), GoneAt: time.Now(), Reason: reason}
	stone.Phase, stone.ExpiresAt = api.PhaseGone, nil
	times := 1
	switch r.cfg.Bug {
	case BuriesNothing:
		return
	case BuriesTwice:
		times = 2
	case BuriesExpired:
		stone.Reason = "expired"
	case BuriesOthers:
		stone.Pod = "another"
	}
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	for range times {
		stone.Number = uint64(len(r.disk.gone) + 1)
		r.disk.gone = append(r.disk.gone, stone)
	}
}

// serveGone answers with a page of the volumes that are gone, the last one first.
func (r *run) serveGone(w http.ResponseWriter, q *http.Request) {
	values := q.URL.Query()
	limit, err := strconv.Atoi(cmp.Or(values.Get("limit"), "500"))
	if err != nil || limit < 1 {
		fail(w, badRequest(api.BadParameter, "bad limit"))
		return
	}
	before, err := strconv.ParseUint(cmp.Or(values.Get("before"), "0"), 10, 64)
	if err != nil {
		fail(w, badRequest(api.BadParameter, "bad before"))
		return
	}
	r.disk.mu.Lock()
	all := slices.Clone(r.disk.gone)
	r.disk.mu.Unlock()
	page := api.GoneList{Items: []api.GoneVolume{}}
	for _, stone := range slices.Backward(all) {
		if before != 0 && stone.Number >= before {
			continue
		}
		if len(page.Items) == limit {
			page.Continue = page.Items[limit-1].Number
			break
		}
		page.Items = append(page.Items, stone)
	}
	answer(w, page)
}
