package fakedriver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/handlers"
	"github.com/katbox/katbox/internal/node/metrics"
)

// people serves the retained volumes to people: through the node's own handlers, before which it does what the driver
// does wrong.
type people struct {
	// server is nil without an admin socket.
	server *http.Server

	mu sync.Mutex
	// leases are those of each volume, by its ID.
	leases map[string]map[*lease]bool
}

// lease is the permission of one request to read a volume. lose says why the volume is no longer retained.
type lease struct{ lose context.CancelCauseFunc }

// errNotAsked is the answer to what nothing of the soak asks for.
var errNotAsked = errors.New("fake: nothing of the soak asks for that")

// startPeople listens on the admin socket, if there is to be one.
func (r *run) startPeople(counted *metrics.Metrics) error {
	r.people.leases = make(map[string]map[*lease]bool)
	if r.cfg.AdminSocket == "" {
		return nil
	}
	handler, err := handlers.NewHandler(handlers.Config{
		Volumes: volumes{r}, Log: logr.Discard(), Metrics: counted,
		Space:       func() (volume.Space, error) { return volume.Space{}, errNotAsked },
		LowPriority: func() (end func()) { return func() {} },
		Report:      func(context.Context, io.Writer) error { return errNotAsked },
	})
	if err != nil {
		return fmt.Errorf("fake: %w", err)
	}
	if err := os.Remove(r.cfg.AdminSocket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("fake: remove the old admin socket: %w", err)
	}
	listener, err := net.Listen("unix", r.cfg.AdminSocket)
	if err != nil {
		return fmt.Errorf("fake: listen: %w", err)
	}
	handler = r.misread(handler)
	r.people.server = handlers.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.running.RLock()
		defer r.running.RUnlock()
		if r.ctx.Err() != nil {
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, q)
	}), logr.Discard())
	go func() { _ = r.people.server.Serve(listener) }() // it ends with the driver
	return nil
}

// stopPeople breaks all requests off.
func (r *run) stopPeople() {
	if r.people.server != nil {
		_ = r.people.server.Close()
	}
}

// streams reports whether the driver itself reads a volume, for people.
func (r *run) streams(id string) bool {
	r.people.mu.Lock()
	defer r.people.mu.Unlock()
	return len(r.people.leases[id]) > 0
}

// endLeases takes back all leases of a volume.
func (r *run) endLeases(id string, why error) {
	r.people.mu.Lock()
	defer r.people.mu.Unlock()
	for one := range r.people.leases[id] {
		one.lose(fmt.Errorf("volume %s: %w", id, why))
	}
	delete(r.people.leases, id)
}
