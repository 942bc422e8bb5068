package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"

	"github.com/go-logr/logr/funcr"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// overHTTP2 returns one connection to the node's handler that speaks HTTP/2, as that of a gateway does.
func (n *node) overHTTP2() http.RoundTripper {
	n.t.Helper()
	short, err := os.MkdirTemp("", "api")
	must(n.t, err)
	l, err := net.Listen("unix", filepath.Join(short, "s"))
	must(n.t, err)
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	server := NewServer(n.h, n.h.Log)
	server.Protocols = protocols
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", l.Addr().String())
	}
	transport := &http.Transport{Protocols: protocols, DisableCompression: true, DialContext: dial}
	conn, err := transport.NewClientConn(n.t.Context(), "http", "node:80")
	must(n.t, err)
	n.t.Cleanup(func() {
		conn.Close()
		if err := errors.Join(server.Close(), os.RemoveAll(short)); err != nil {
			n.t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			n.t.Error(err)
		}
	})
	return conn
}

// TestOverHTTP2: one request does not end the connection that others use, and a stream ends as it does
// on the admin socket.
func TestOverHTTP2(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	large(t, filepath.Join(dir, "large"))
	write(t, filepath.Join(dir, "log"), "text")
	conn := n.overHTTP2()
	client := api.NewClient("node", conn)
	for range 3 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://node/v1/volumes", strings.NewReader("body"))
		must(t, err)
		answer, err := conn.RoundTrip(request)
		must(t, err)
		if answer.Body.Close(); answer.StatusCode != 400 {
			t.Errorf("a request with a body: %d", answer.StatusCode)
		}
	}
	list, err := client.Files(t.Context(), id, api.FilesQuery{})
	if err != nil || len(list.Entries) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	for name, q := range map[string]api.BytesQuery{"file": {Path: "large"}, "archive": {Archive: true}} {
		s, err := client.Bytes(t.Context(), id, q)
		must(t, err)
		if got, err := io.Copy(io.Discard, s); err != nil || got < 16<<20 {
			t.Errorf("%s: %d bytes, %v", name, got, err)
		}
		s.Close()
	}
	for name, q := range map[string]api.BytesQuery{"file": {Path: "large"}, "archive": {Archive: true}} {
		s, err := client.Bytes(t.Context(), id, q)
		must(t, err)
		_, err = io.ReadFull(s, make([]byte, 100))
		must(t, err)
		n.volumes.lose(id, volume.ErrNotRetained)
		if got, err := io.Copy(io.Discard, s); !errors.Is(err, api.ErrCut) {
			t.Errorf("%s: after %d bytes %v, want that the stream was cut", name, got, err)
		}
		s.Close()
		n.add(1)
	}
}

// TestStalledOverHTTP2: HTTP/2 does not say that a stream ended because its client did not read.
func TestStalledOverHTTP2(t *testing.T) {
	n := newNode(t, func(h *handler) { h.stall = 200 * time.Millisecond })
	id, dir := n.add(1)
	large(t, filepath.Join(dir, "large"))
	client := api.NewClient("node", n.overHTTP2())
	var s *api.Stream
	eventually(t, "a stream", func() (begun bool) { // on a busy machine it may end before it begins
		var err error
		s, err = client.Bytes(t.Context(), id, api.BytesQuery{Path: "large"})
		return err == nil
	})
	defer s.Close()
	eventually(t, "the stream ends", func() bool {
		return metricstest.Of(t, n.metrics)[`katbox_read_requests_total{outcome="stalled",verb="bytes"}`] >= 1
	})
	if got, err := io.Copy(io.Discard, s); !errors.Is(err, api.ErrCut) {
		t.Errorf("after %d bytes %v, want that the stream was cut", got, err)
	}
}

// TestWhoAsks: the log names on whose behalf a gateway asks, and nobody else's names.
func TestWhoAsks(t *testing.T) {
	for _, gateway := range []bool{true, false} {
		var log bytes.Buffer
		n := newNode(t, func(h *handler) {
			h.Gateway, h.Log = gateway, funcr.NewJSON(func(line string) { log.WriteString(line + "\n") }, funcr.Options{})
		})
		id, dir := n.add(1)
		write(t, filepath.Join(dir, "log"), "text")
		user := "alice\n\"" + strings.Repeat("x", 1000)
		s, err := n.client.OnBehalf(user, "audit-1").Bytes(t.Context(), id, api.BytesQuery{Path: "log"})
		must(t, err)
		_, err = io.Copy(io.Discard, s)
		must(t, err, s.Close())
		n.client.Close()
		eventually(t, "the request has ended", func() bool {
			streaming, _ := n.h.streams.Taken("etl")
			return metricstest.Of(t, n.metrics)[`katbox_read_requests_total{outcome="complete",verb="bytes"}`] == 1 && n.volumes.readings() == 0 &&
				streaming == 0
		})
		var line map[string]any
		must(t, json.Unmarshal(log.Bytes(), &line))
		who, audit := line["user"], line["auditID"]
		if gateway && (who != user[:mostAsker] || audit != "audit-1") || !gateway && (who != nil || audit != nil) {
			t.Errorf("gateway %t: %q, %q", gateway, who, audit)
		}
	}
}

// TestReadRate: a stream is not sent faster. That it takes as long as it should is not looked at.
func TestReadRate(t *testing.T) {
	n := newNode(t, func(h *handler) { h.ReadRate = 4 << 20 })
	id, dir := n.add(1)
	write(t, filepath.Join(dir, "log"), strings.Repeat("x", 1<<20))
	began := time.Now()
	text, err := n.read(id, api.BytesQuery{Path: "log"})
	must(t, err)
	if took := time.Since(began); len(text) != 1<<20 || took < (1<<20-2*progress)*time.Second/(4<<20) {
		t.Errorf("%d bytes in %v", len(text), took)
	}
}

// TestMountsAreListedWithoutWhatIsNotKnown: neither a mode nor a time.
func TestMountsAreListedWithoutWhatIsNotKnown(t *testing.T) {
	path, err := paths.ParseRef("cache")
	must(t, err)
	text, err := json.Marshal(entry(files.Entry{Name: "cache", Path: path, Type: files.Mount}))
	must(t, err)
	if want := `{"name":"cache","ref":"cache","type":"mount","size":0,"allocated":0,"uid":0,"gid":0,"nlink":0}`; string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
}

// TestUnreadDirectoryKeepsItsSlot: until it is sent it takes memory.
func TestUnreadDirectoryKeepsItsSlot(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	write(t, filepath.Join(dir, "log"), "text")
	w := &slowWriter{ResponseWriter: httptest.NewRecorder(), writing: make(chan struct{}), letGo: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/volumes/"+id+"/files", nil))
	}()
	<-w.writing
	if all, own := n.h.directories.Taken("etl"); all != 1 || own != 1 || len(n.h.lists) != 0 {
		t.Errorf("%d directories and %d lists are made", all, len(n.h.lists))
	}
	close(w.letGo)
	<-ended
	if all, _ := n.h.directories.Taken("etl"); all != 0 {
		t.Errorf("%d directories are made", all)
	}
}

// slowWriter is a client that reads when it is let go.
type slowWriter struct {
	http.ResponseWriter
	writing, letGo chan struct{}
}

func (w *slowWriter) Write(p []byte) (int, error) {
	close(w.writing)
	<-w.letGo
	return w.ResponseWriter.Write(p)
}
