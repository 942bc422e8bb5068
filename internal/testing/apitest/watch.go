package apitest

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// watch sends the changes since a version, until its time is over.
func (s *Server) watch(w http.ResponseWriter, req *http.Request, r request) {
	from, err := strconv.ParseUint(req.URL.Query().Get("resourceVersion"), 10, 64)
	if err != nil {
		send(w, nil, apierrors.NewBadRequest("a watch has to begin at a version: "+err.Error()))
		return
	}
	selected, err := selectorOf(req)
	if err != nil {
		send(w, nil, err)
		return
	}
	ctx := req.Context()
	if seconds, err := strconv.Atoi(req.URL.Query().Get("timeoutSeconds")); err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := func() { w.(http.Flusher).Flush() }
	flush()
	out := json.NewEncoder(w)
	s.mu.Lock()
	cut := s.cut
	s.mu.Unlock()
	for {
		events, expired, changed := s.since(from)
		if expired {
			_, text := statusOf(apierrors.NewResourceExpired("the version is too old"))
			_ = out.Encode(map[string]any{"type": "ERROR", "object": json.RawMessage(text)})
			return
		}
		for _, e := range events {
			from = e.version
			if e.place != r.place || r.namespace != "" && e.object.GetNamespace() != r.namespace || r.name != "" && e.object.GetName() != r.name {
				continue
			}
			kind := selected.change(e)
			if kind != "" && out.Encode(map[string]any{"type": kind, "object": shown(req, e.object)}) != nil {
				return
			}
		}
		flush()
		select {
		case <-ctx.Done():
			if req.Context().Err() == nil && req.URL.Query().Get("allowWatchBookmarks") == "true" {
				_ = out.Encode(map[string]any{"type": "BOOKMARK", "object": s.bookmark(req, r.place)})
			}
			return
		case <-cut:
			return
		case <-changed:
		}
	}
}

// bookmark is an object with the version up to which all changes were sent.
func (s *Server) bookmark(req *http.Request, p place) map[string]any {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(schema.GroupVersion{Group: p.group, Version: p.version}.String())
	o.SetKind(s.kinds[p])
	s.mu.Lock()
	defer s.mu.Unlock()
	o.SetResourceVersion(strconv.FormatUint(s.version, 10))
	return shown(req, o)
}

// since returns the changes after a version, whether some of them are forgotten, and what is closed at
// the next one.
func (s *Server) since(version uint64) (events []event, expired bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.compacted {
		return nil, true, s.changed
	}
	if begin := version - s.compacted; begin < uint64(len(s.events)) {
		events = s.events[begin:]
	}
	return events, false, s.changed
}
