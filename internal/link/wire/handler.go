package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
)

// mostTime bounds how long the node takes to read a question, and to answer one.
const mostTime = 25 * time.Second

// handler answers what a controller asks of a node's pools.
type handler struct{ pools local.Pools }

// Handler answers the requests below [Path].
func Handler(p local.Pools) http.Handler {
	h := handler{p}
	mux := http.NewServeMux()
	get := func(pattern string, do func(*http.Request) (any, error)) {
		mux.Handle("GET "+pattern, answer(false, do))
	}
	change := func(pattern string, do func(*http.Request) (any, error)) { mux.Handle(pattern, answer(true, do)) }
	get(Path, h.list)
	get(Path+"/{pool}/volumes", paged(h.pools.Volumes))
	get(Path+"/{pool}/volumes/{name}", named(h.pools.Volume))
	change("POST "+Path+"/{pool}/volumes", h.create)
	change("PUT "+Path+"/{pool}/volumes/{name}/size", h.grow)
	change("PUT "+Path+"/{pool}/volumes/{name}/comment", h.comment)
	change("DELETE "+Path+"/{pool}/volumes/{name}", named(deleting(h.pools.DeleteVolume)))
	get(Path+"/{pool}/snapshots", paged(h.pools.Snapshots))
	get(Path+"/{pool}/snapshots/{name}", named(h.pools.Snapshot))
	change("POST "+Path+"/{pool}/snapshots", h.snapshot)
	change("DELETE "+Path+"/{pool}/snapshots/{name}", named(deleting(h.pools.DeleteSnapshot)))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		send(w, http.StatusBadRequest, Failure{"Invalid", fmt.Sprintf("a controller cannot ask for %s %.200q", r.Method, r.URL.Path)})
	})
	return mux
}

// answer answers with what do returns. change: do changes something.
func answer(change bool, do func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), mostTime)
		defer cancel()
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(mostTime))
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, mostBody)
		result, err := do(r)
		if err != nil {
			failure, status := failureOf(err, change)
			failure.Message = shorten(failure.Message, mostMessage)
			send(w, status, failure)
			return
		}
		send(w, http.StatusOK, result)
	})
}

// send writes an answer. A controller that is gone does not read it.
func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// read reads the body of a question.
func read[T any](r *http.Request) (body T, err error) {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields() // what is not known would not be done
	if err := decoder.Decode(&body); err != nil {
		return body, fmt.Errorf("%w: the body cannot be read: %w", volume.ErrInvalid, err)
	}
	return body, nil
}

// poolOf returns the pool of a question.
func poolOf(r *http.Request) (string, error) {
	pool := r.PathValue("pool")
	return pool, checkPool(pool)
}

// ofOne returns the pool and the volume, or snapshot, of a question.
func ofOne(r *http.Request) (pool, name string, err error) {
	if pool, err = poolOf(r); err != nil {
		return "", "", err
	}
	name = r.PathValue("name")
	return pool, name, checkName("name", name)
}

// paged answers with a page.
func paged[T any](of func(ctx context.Context, pool, after string, limit int) ([]T, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		pool, err := poolOf(r)
		if err != nil {
			return nil, err
		}
		query := r.URL.Query()
		after := query.Get("after")
		if after != "" {
			if err := checkName("after", after); err != nil {
				return nil, err
			}
		}
		limit, err := strconv.Atoi(query.Get("limit"))
		if err != nil || limit <= 0 || limit > MostPage {
			return nil, volume.Invalid("limit", fmt.Sprintf("is not between 1 and %d", MostPage))
		}
		all, err := of(r.Context(), pool, after, limit)
		return list[T]{all}, err
	}
}

// named answers about one.
func named[T any](of func(ctx context.Context, pool, name string) (T, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		pool, name, err := ofOne(r)
		if err != nil {
			return nil, err
		}
		return of(r.Context(), pool, name)
	}
}

func deleting(do func(ctx context.Context, pool, name string) error) func(context.Context, string, string) (struct{}, error) {
	return func(ctx context.Context, pool, name string) (struct{}, error) { return struct{}{}, do(ctx, pool, name) }
}

func (h handler) list(r *http.Request) (any, error) {
	all, err := h.pools.Pools(r.Context())
	return list[local.Pool]{all}, err
}

func (h handler) create(r *http.Request) (any, error) {
	pool, err := poolOf(r)
	if err != nil {
		return nil, err
	}
	v, err := read[local.NewVolume](r)
	if err != nil {
		return nil, err
	}
	if err := checkNew(v); err != nil {
		return nil, err
	}
	return h.pools.CreateVolume(r.Context(), pool, v)
}

func (h handler) grow(r *http.Request) (any, error) {
	pool, name, err := ofOne(r)
	if err != nil {
		return nil, err
	}
	to, err := read[size](r)
	if err != nil {
		return nil, err
	}
	if err := checkSize(to.Bytes); err != nil {
		return nil, err
	}
	return h.pools.GrowVolume(r.Context(), pool, name, to.Bytes)
}

func (h handler) comment(r *http.Request) (any, error) {
	pool, name, err := ofOne(r)
	if err != nil {
		return nil, err
	}
	c, err := read[comment](r)
	if err != nil {
		return nil, err
	}
	if err := checkComment(c.Comment); err != nil {
		return nil, err
	}
	return h.pools.CommentVolume(r.Context(), pool, name, c.Comment)
}

func (h handler) snapshot(r *http.Request) (any, error) {
	pool, err := poolOf(r)
	if err != nil {
		return nil, err
	}
	s, err := read[snapshot](r)
	if err != nil {
		return nil, err
	}
	if err := checkName("name", s.Name); err != nil {
		return nil, err
	}
	if err := checkName("volume", s.Volume); err != nil {
		return nil, err
	}
	return h.pools.CreateSnapshot(r.Context(), pool, s.Name, s.Volume)
}
