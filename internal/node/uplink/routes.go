package uplink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// mostAnswers bounds the answers about owners in one request, mostOwners its size.
	mostAnswers = 1000
	mostOwners  = 1 << 20
	// mostOwning bounds how many such requests are received at once on a connection, and how many of
	// those that were received are handled at once, and ownParallel how many of the
	// answers in one: each may be a commit, and commits that run together share a sync.
	mostOwning  = 4
	ownParallel = 16
	// ownLimit bounds how long one takes.
	ownLimit = 10 * time.Second
)

// handle answers a request of the other end.
func (c *connection) handle(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != api.SummaryPath {
		c.u.running.Add(1)
		defer c.u.running.Add(-1)
		c.running.Add(1)
		defer c.running.Add(-1)
	}
	if c.limit.Wait(r.Context()) != nil {
		return // the gateway is gone, or has given up
	}
	c.u.peer.counts.asked(c.u.cfg.Metrics)
	c.u.peer.route(c, w, r)
}

// forGateway answers a request of a gateway.
func (c *connection) forGateway(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == api.SummaryPath:
		c.only(http.MethodGet, w, r, c.summary)
	case path == api.OwnersPath:
		c.only(http.MethodPost, w, r, c.owners)
	case path == api.OutcomesPath && c.u.cfg.Outcomes != nil:
		c.only(http.MethodPost, w, r, c.outcomes)
	case path == api.UploadsPath && c.u.cfg.Uploads != nil:
		c.only(http.MethodPost, w, r, c.uploads)
	case path == api.VolumesPath, path == api.GonePath, path == api.GrepPath, strings.HasPrefix(path, api.VolumesPath+"/"):
		c.u.cfg.Handler.ServeHTTP(w, r)
	default:
		api.WriteError(w, api.NewError(api.NotFound, "there is nothing for a gateway at %q", path))
	}
}

// only answers requests with one method.
func (c *connection) only(method string, w http.ResponseWriter, r *http.Request, do http.HandlerFunc) {
	if r.Method != method {
		w.Header().Set("Allow", method)
		api.WriteError(w, api.NewError(api.MethodNotAllowed, "%s is not possible for %q", r.Method, r.URL.Path))
		return
	}
	do(w, r)
}

// owners notes whose volumes are.
func (c *connection) owners(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), ownLimit)
	defer cancel()
	answers, ok := receive(ctx, c, w, r, readAnswers)
	if !ok {
		return
	}
	done, ok := enter(ctx, c.u.owning)
	if !ok {
		busyOwning(w)
		return
	}
	defer done()
	if c.u.cfg.Uploads == nil { // nobody needs the seals
		for i := range answers {
			answers[i].owner.Seal = ""
		}
	}
	kept, err := c.u.own(ctx, answers)
	if err != nil {
		api.WriteError(w, api.NewError(api.InternalError, "%s", volume.OneLine(err)))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(api.OwnersKept{Kept: kept}) // the gateway is gone
}

// receive reads the body of a request of the gateway. If it returns false, it has answered why.
func receive[T any](ctx context.Context, c *connection, w http.ResponseWriter, r *http.Request, read func(io.Reader) (T, error)) (T, bool) {
	var none T
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(ownLimit))
	_ = control.SetWriteDeadline(time.Now().Add(2 * ownLimit))
	// A gateway that does not send its answers keeps others from nothing.
	done, ok := enter(ctx, c.receiving)
	if !ok {
		busyOwning(w)
		return none, false
	}
	all, err := read(http.MaxBytesReader(w, r.Body, mostOwners))
	done()
	if err != nil {
		api.WriteError(w, api.NewError(api.BadRequest, "%s", volume.OneLine(err)))
		return none, false
	}
	return all, true
}

// enter waits for a place. It returns false if ctx ends first.
func enter(ctx context.Context, places chan struct{}) (leave func(), ok bool) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, true
	case <-ctx.Done():
		return nil, false
	}
}

func busyOwning(w http.ResponseWriter) {
	api.WriteError(w, api.NewError(api.TooManyRequests, "the node is busy with %d other requests of the kind; try again", mostOwning))
}

// owned is an answer about a volume that may be one of the node's.
type owned struct {
	id    volume.ID
	pod   volume.PodUID
	owner volume.Owner
}

// readAnswers reads and checks the body of a request. What the node does not know is checked by
// Volumes.Own.
func readAnswers(body io.Reader) ([]owned, error) {
	var all struct {
		Items bounded[api.OwnerAnswer] `json:"items"`
	}
	if err := json.NewDecoder(body).Decode(&all); err != nil {
		return nil, fmt.Errorf("the body is no list of owners: %w", err)
	}
	answers := make([]owned, 0, len(all.Items))
	for i, item := range all.Items {
		id, err := volume.ParseID("id", item.ID)
		pod, err2 := volume.ParsePodUID("podUID", item.PodUID)
		owner, err3 := item.Owner.Parse()
		if err := errors.Join(err, err2, err3); err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		if owner.Verdict == volume.Confirmed {
			owner.Seal = item.Seal
		}
		answers = append(answers, owned{id, pod, owner})
	}
	return answers, nil
}

// own notes whose volumes are; it counts those that the node has noted.
func (u *Uplink) own(ctx context.Context, answers []owned) (kept int, err error) {
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		free = make(chan struct{}, ownParallel)
	)
	for _, a := range answers {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			failed := u.cfg.Volumes.Own(ctx, a.id, a.pod, a.owner)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case failed == nil:
				kept++
			case !errors.Is(failed, volume.ErrNotFound) && !errors.Is(failed, volume.ErrInvalid) && !errors.Is(failed, volume.ErrGone):
				err = fmt.Errorf("note whose the volume %s is: %w", a.id, failed)
				return // the node asks again
			}
			u.asks.answered(a.id)
		})
	}
	all.Wait()
	return kept, err
}
