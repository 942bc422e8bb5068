package fakedriver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/api"
)

// admin serves the retained volumes. It is a small second implementation of the
// node's API, in the words of package api.
type admin struct {
	server http.Server
	// running is held by each request, so that none outlives the driver.
	running sync.RWMutex

	mu sync.Mutex
	// readers end the requests that read a volume, by its ID.
	readers map[string]map[*reader]bool
}

// reader is one request that reads a volume.
type reader struct {
	// lost ends when the volume is no longer retained.
	lost context.Context
	end  context.CancelFunc
}

// startAdmin listens on the admin socket, if there is to be one.
func (r *run) startAdmin() error {
	r.admin.readers = make(map[string]map[*reader]bool)
	if r.cfg.AdminSocket == "" {
		return nil
	}
	if err := os.Remove(r.cfg.AdminSocket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("fake: remove the old admin socket: %w", err)
	}
	listener, err := net.Listen("unix", r.cfg.AdminSocket)
	if err != nil {
		return fmt.Errorf("fake: listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/volumes", r.serveList)
	mux.HandleFunc("GET /v1/volumes/{id}", r.serveVolume)
	mux.HandleFunc("PATCH /v1/volumes/{id}", r.serveKeep)
	mux.HandleFunc("DELETE /v1/volumes/{id}", r.serveRemove)
	mux.HandleFunc("GET /v1/gone", r.serveGone)
	mux.HandleFunc("GET /v1/volumes/{id}/files", r.serveFiles)
	mux.HandleFunc("GET /v1/volumes/{id}/bytes", r.serveBytes)
	r.admin.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.admin.running.RLock()
		defer r.admin.running.RUnlock()
		if r.ctx.Err() != nil {
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, q)
	})
	go func() { _ = r.admin.server.Serve(listener) }() // it ends with the driver
	return nil
}

// stopAdmin breaks all requests off. The driver's context has ended.
func (r *run) stopAdmin() {
	_ = r.admin.server.Close()
	r.admin.running.Lock()
	defer r.admin.running.Unlock()
}

// read begins to read a retained volume.
func (r *run) read(id string) (record, *reader, error) {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	v, ok := r.disk.get(id)
	switch {
	case !ok, v.deleting:
		return v, nil, failed(http.StatusNotFound, api.NotFound, "there is no volume "+id)
	case v.published && r.cfg.Bug != ReadsPublished:
		return v, nil, failed(http.StatusConflict, api.Conflict, "the volume is published")
	}
	if r.cfg.Bug == ReadingProlongs && !v.prolonged {
		v.prolonged = true
		r.disk.put(v)
	}
	one := &reader{}
	one.lost, one.end = context.WithCancel(context.Background())
	if r.admin.readers[id] == nil {
		r.admin.readers[id] = make(map[*reader]bool)
	}
	r.admin.readers[id][one] = true
	return v, one, nil
}

// stopReading ends a reader, at its end or because the volume goes.
func (r *run) stopReading(id string, one *reader) {
	one.end()
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	delete(r.admin.readers[id], one)
}

// streams reports whether the driver itself reads a volume, for people.
func (r *run) streams(id string) bool {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	return len(r.admin.readers[id]) > 0
}

// loseReaders ends all that read a volume.
func (r *run) loseReaders(id string) {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	for one := range r.admin.readers[id] {
		one.end()
	}
	delete(r.admin.readers, id)
}

// refusal is an answer that is an error.
type refusal struct{ api.Status }

func (e *refusal) Error() string { return e.Message }

func failed(code int, reason api.Reason, message string) error {
	return &refusal{api.Status{Kind: "Status", Status: "Failure", Code: code, Reason: reason, Message: message}}
}

func badRequest(cause api.CauseReason, message string) error {
	return &refusal{api.Status{
		Kind: "Status", Status: "Failure", Code: http.StatusBadRequest, Reason: api.BadRequest, Message: message,
		Details: &api.Details{Causes: []api.Cause{{Reason: cause, Message: message}}},
	}}
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		err = failed(http.StatusNotFound, api.NotFound, err.Error())
	}
	var status *refusal
	if !errors.As(err, &status) {
		errors.As(failed(http.StatusInternalServerError, api.InternalError, err.Error()), &status)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status.Code)
	_ = json.NewEncoder(w).Encode(status.Status) // the client is gone
}

func answer(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what) // the client is gone
}

// find returns what a path in a volume leads to. What is behind a symlink or below
// a mount is refused, unless that is the bug.
func (r *run) find(v record, path string) (full string, info fs.FileInfo, err error) {
	top := r.data(v)
	if path == "" {
		info, err = os.Lstat(top)
		return top, info, err
	}
	if len(path) > unix.PathMax || !filepath.IsLocal(path) {
		return "", nil, badRequest(api.BadPath, "bad path")
	}
	mounts, err := mountsBelow(top)
	if err != nil {
		return "", nil, err
	}
	full = top
	elements := strings.Split(path, "/")
	for i, name := range elements {
		full += "/" + name
		if info, err = os.Lstat(full); err != nil {
			return "", nil, err
		}
		for _, mount := range mounts {
			if mount == full && r.cfg.Bug != ReadsMounts {
				return full, info, badRequest(api.CrossesMount, "something is mounted there")
			}
		}
		switch {
		case info.Mode().Type() != fs.ModeSymlink:
		case r.cfg.Bug == ReadsLinks:
			info, err = os.Stat(full)
			if err != nil {
				return "", nil, err
			}
		case i < len(elements)-1:
			return "", nil, badRequest(api.IsSymlink, "there is a symlink in the path")
		}
	}
	return full, info, nil
}
