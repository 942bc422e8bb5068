package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// deadlines is a connection that remembers until when it may be written to.
type deadlines struct {
	*httptest.ResponseRecorder

	mu  sync.Mutex
	all []time.Time
}

func (d *deadlines) SetReadDeadline(time.Time) error { return nil }

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, t)
	return nil
}

// request is one of alice, which the server answers without a network.
func (c *cluster) request(ctx context.Context, method, path string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, method, path, nil)
	r.Header.Set("X-Remote-User", "alice")
	return r
}

// The time to write an answer is not over before the gateway gives a node up: else the stream is reset,
// and the client is not told why.
func TestErrorsGetOut(t *testing.T) {
	c := newCluster(t)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	before := time.Now()
	c.server.ServeHTTP(w, c.request(t.Context(), http.MethodDelete, list+"/job-9-x7k2p.8n0nx3kybwp5"))
	if len(w.all) == 0 || !w.all[0].After(before.Add(max(removeLimit, beginLimit)+nodeLimit)) {
		t.Errorf("writing ends at %v, and the request began at %v", w.all, before)
	}
}

// What is left of a stream when its handler has ended is not sent for ever.
func TestEndOfStream(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, _ := n.put(1)
	slowNode(n, 1)()
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	before := time.Now()
	c.server.ServeHTTP(w, c.request(t.Context(), http.MethodGet, list+"/"+name+"/log?path=x"))
	if last := w.all[len(w.all)-1]; w.Code != http.StatusOK || !last.After(before) {
		t.Errorf("%d, writing ends at %v", w.Code, last)
	}
}

// A client that has left, or has closed its side alone, is not told that all went well.
func TestNoAnswerForWhoHasLeft(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, _ := n.put(1)
	ctx, leave := context.WithCancel(t.Context())
	n.answers = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			leave()
			<-r.Context().Done()
		}
		return r.Method == http.MethodDelete
	}
	defer func() {
		if why := recover(); why != http.ErrAbortHandler { //nolint:errorlint // it is what was thrown
			t.Errorf("the handler ended with %v", why)
		}
	}()
	c.server.ServeHTTP(httptest.NewRecorder(), c.request(ctx, http.MethodDelete, list+"/"+name))
}

// A node that begins an error and does not end it holds no stream of a user for ever.
func TestErrorWithoutEnd(t *testing.T) {
	c := newCluster(t, func(s *Server) { s.begin = 200 * time.Millisecond })
	n := c.add("n1")
	name, _ := n.put(1)
	n.answers = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/bytes") {
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	}
	c.wantStatus("log", c.do("alice", http.MethodGet, list+"/"+name+"/log?path=x", nil, ""), 504, "Timeout")
}

// A search for a volume of a pod that is not known goes through all volumes of a namespace, and is bounded
// as lists are.
func TestSearchesAreBounded(t *testing.T) {
	c := newCluster(t, func(s *Server) { s.lists.patience = time.Millisecond })
	for range maxForReader {
		release, refused := c.server.lists.take("alice")
		if refused != nil {
			t.Fatal(refused)
		}
		defer release()
	}
	for _, path := range []string{"", "/files", "/log?path=x"} {
		c.wantStatus("get"+path, c.do("alice", http.MethodGet, list+"/unknown.8n0nx3kybwp5"+path, nil, ""), 429, "TooManyRequests")
	}
	c.wantStatus("delete", c.do("alice", http.MethodDelete, list+"/unknown.8n0nx3kybwp5", nil, ""), 429, "TooManyRequests")
	c.wantStatus("a pod that is known", c.do("alice", http.MethodGet, list+"/job-9-x7k2p.8n0nx3kybwp5", nil, ""), 404, "NotFound")
}
