package handlers

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/internal/testing/roottest/hostile"
)

// large makes a file that fits in no buffer between daemon and client.
func large(t *testing.T, path string) {
	t.Helper()
	write(t, path, strings.Repeat("0123456789abcdef", 1<<20))
}

// TestLostVolumeEndsItsStreams: a client that does not read must not keep the files of a volume
// that is published again or goes, and gets no end of file.
func TestLostVolumeEndsItsStreams(t *testing.T) {
	for name, q := range map[string]api.BytesQuery{"file": {Path: "large"}, "archive": {Archive: true}} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			id, dir := n.add(1)
			path := filepath.Join(dir, "large")
			large(t, path)
			s, err := n.client.Bytes(t.Context(), id, q)
			must(t, err)
			defer s.Close()
			_, err = io.ReadFull(s, make([]byte, 100))
			must(t, err)
			if opens(t, path) == 0 {
				t.Fatal("the file is not open, so this shows nothing")
			}
			n.volumes.lose(id, fmt.Errorf("volume: %w", volume.ErrNotRetained))
			eventually(t, "the file is closed", func() bool { return opens(t, path) == 0 && n.volumes.readings() == 0 })
			rest, err := io.Copy(io.Discard, s)
			if !errors.Is(err, api.ErrCut) || rest >= 16<<20-100 {
				t.Errorf("after %d bytes: %v, want that the stream was cut", rest, err)
			}
			if n, err := s.Read(make([]byte, 1)); n != 0 || !errors.Is(err, api.ErrCut) {
				t.Errorf("once more: %d, %v", n, err)
			}
		})
	}
}

// TestLostBeforeTheFirstByte: the answer says why.
func TestLostBeforeTheFirstByte(t *testing.T) {
	for why, code := range map[error]int{volume.ErrNotRetained: 409, volume.ErrGone: 410} {
		n := newNode(t)
		id, dir := n.add(1)
		write(t, filepath.Join(dir, "f"), "content")
		n.volumes.lose(id, fmt.Errorf("volume: %w", why))
		for _, q := range []api.BytesQuery{{Path: "f"}, {Path: "f", TailLines: 1}, {Archive: true}} {
			_, err := n.read(id, q)
			wantCode(t, fmt.Sprintf("%v %+v", why, q), err, code)
		}
		_, err := n.client.Files(t.Context(), id, api.FilesQuery{})
		wantCode(t, fmt.Sprintf("%v, list", why), err, code)
	}
	n := newNode(t)
	_, err := n.read("csi-unknown", api.BytesQuery{Path: "f"})
	wantCode(t, "an unknown volume", err, 404)
	id, _ := n.add(1)
	n.volumes.all[volume.ID(id)].Record.Phase = volume.Published
	_, err = n.read(id, api.BytesQuery{Path: "f"})
	wantCode(t, "a published volume", err, 409)
	wantCode(t, "remove a published volume", n.client.Purge(t.Context(), id, ""), 409)
}

// TestErrorHasNoHeadersOfAnArchive that was to be resumed.
func TestErrorHasNoHeadersOfAnArchive(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	if err := os.Symlink("target", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	whole, err := n.client.Bytes(t.Context(), id, api.BytesQuery{Archive: true})
	if err != nil {
		t.Fatal(err)
	}
	whole.Close()
	answer, _ := n.raw(http.MethodGet, "/v1/volumes/"+id+"/bytes", url.Values{"path": {"link"}, "archive": {"tar"}},
		http.Header{"Range": {"bytes=512-"}, "If-Range": {whole.ETag}})
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("code %d", answer.StatusCode)
	}
	for _, name := range []string{"Content-Range", "Content-Disposition", "ETag", "Katbox-Size", "Katbox-Offset"} {
		if got := answer.Header.Get(name); got != "" {
			t.Errorf("the error has the header %s: %s", name, got)
		}
	}
}

// TestStalledClientLosesItsStream: one that reads nothing, and one that reads a byte now and then.
func TestStalledClientLosesItsStream(t *testing.T) {
	for name, pause := range map[string]time.Duration{"reads nothing": time.Hour, "reads a byte now and then": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, func(h *handler) { h.stall = 100 * time.Millisecond })
			id, dir := n.add(1)
			path := filepath.Join(dir, "large")
			large(t, path)
			conn, err := net.Dial("unix", n.socket)
			must(t, err)
			defer conn.Close()
			_, err = fmt.Fprintf(conn, "GET /v1/volumes/%s/bytes?path=large HTTP/1.1\r\nHost: x\r\n\r\n", id)
			must(t, err)
			done := make(chan struct{})
			defer close(done)
			go func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(pause):
						_, _ = conn.Read(make([]byte, 1))
					}
				}
			}()
			eventually(t, "counted as stalled", func() bool {
				return metricstest.Of(t, n.metrics)[`katbox_read_requests_total{outcome="stalled",verb="bytes"}`] == 1
			})
			if left := opens(t, path); left != 0 || n.volumes.readings() != 0 {
				t.Errorf("%d handles of the file are left", left)
			}
		})
	}
}

// TestSlowClientKeepsItsStream: it reads more than it has to within each limit, so all comes.
func TestSlowClientKeepsItsStream(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	large(t, filepath.Join(dir, "large"))
	s, err := n.client.Bytes(t.Context(), id, api.BytesQuery{Path: "large"})
	must(t, err)
	defer s.Close()
	if got, err := io.Copy(io.Discard, s); err != nil || got != 16<<20 {
		t.Errorf("%d bytes, %v", got, err)
	}
}

// TestStreamsAreBounded: a namespace has half of the slots, and they come back on each way out.
func TestStreamsAreBounded(t *testing.T) {
	n := newNode(t, streamsThatMayStandStill)
	id, dir := n.add(1)
	large(t, filepath.Join(dir, "large"))
	for round := range 2 {
		var streams []*api.Stream
		for range mostStreams / 2 {
			s, err := n.client.Bytes(t.Context(), id, api.BytesQuery{Path: "large"})
			must(t, err)
			streams = append(streams, s)
		}
		_, err := n.client.Bytes(t.Context(), id, api.BytesQuery{Path: "large"})
		wantCode(t, "one stream too many", err, 429)
		if e := (*api.Error)(nil); !errors.As(err, &e) || e.RetryAfter != time.Second {
			t.Errorf("round %d: %v, want that it tells when to try again", round, err)
		}
		for _, s := range streams {
			s.Close()
		}
		eventually(t, "the slots are free", func() bool { all, _ := n.h.streams.Taken("etl"); return all == 0 })
	}
	for range 2 * mostStreams {
		_, err := n.client.Bytes(t.Context(), id, api.BytesQuery{Path: "missing"})
		wantCode(t, "a missing file", err, 404)
	}
	metricstest.Of(t, n.metrics).Want(t, "after all", metricstest.Values{
		"katbox_read_streams": 0, "katbox_read_streams_refused_total": 2, `katbox_read_requests_total{outcome="not_found",verb="bytes"}`: 64,
	})
}

func TestArchiveAndItsResumption(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	must(t, os.Mkdir(filepath.Join(dir, "out"), 0o755), unix.Mkfifo(filepath.Join(dir, "out/pi pe"), 0o644))
	large(t, filepath.Join(dir, "out/large"))
	write(t, filepath.Join(dir, "log"), "text")
	write(t, filepath.Join(dir, "core"), "left out")
	q := api.BytesQuery{Archive: true, Exclude: []string{"core"}}
	s, err := n.client.Bytes(t.Context(), id, q)
	must(t, err)
	defer s.Close()
	whole, err := io.ReadAll(s)
	must(t, err)
	if count, names := s.Skipped(); count != 1 || len(names) != 1 || names[0] != "out/pi%20pe" {
		t.Errorf("left out %d, %q", count, names)
	}
	var names []string
	for r := tar.NewReader(bytes.NewReader(whole)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "out/large") || !strings.Contains(got, "log") || strings.Contains(got, "core") {
		t.Errorf("entries %q", names)
	}
	for _, from := range []int64{1, 512, 5 << 20, int64(len(whole)) - 1} {
		q.From, q.ETag = from, s.ETag
		rest, err := n.client.Bytes(t.Context(), id, q)
		must(t, err)
		got, err := io.ReadAll(rest)
		if err != nil || rest.Offset != from || !bytes.Equal(got, whole[from:]) {
			t.Errorf("from %d: offset %d, %d bytes, %v", from, rest.Offset, len(got), err)
		}
	}
	q.ETag = `"another"`
	again, err := n.client.Bytes(t.Context(), id, q)
	must(t, err)
	if got, err := io.ReadAll(again); err != nil || again.Offset != 0 || !bytes.Equal(got, whole) {
		t.Errorf("of another archive: offset %d, %d bytes, %v; want all of it", again.Offset, len(got), err)
	}
	_, err = n.read(id, api.BytesQuery{Archive: true, Exclude: []string{"["}})
	wantCode(t, "a bad pattern", err, 400, api.BadParameter)
	_, err = n.read(id, api.BytesQuery{Archive: true, From: 1 << 40})
	wantCode(t, "behind the end", err, 416)
	_, err = n.read(id, api.BytesQuery{Archive: true, MaxBytes: 1 << 20})
	wantCode(t, "larger than allowed", err, 400, api.BadParameter)
}

// TestLongNamesThatAreLeftOut: a pod may make the paths as long as it likes.
func TestLongNamesThatAreLeftOut(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	for _, name := range []string{"\xfe", "\xff"} {
		hostile.Deep(t, dir, 270, strings.Repeat(name, 250))
	}
	s, err := n.client.Bytes(t.Context(), id, api.BytesQuery{Archive: true})
	must(t, err)
	defer s.Close()
	if _, err := io.Copy(io.Discard, s); err != nil {
		t.Error(err)
	}
	if count, names := s.Skipped(); count != 2 || len(names) > 0 {
		t.Errorf("left out %d, %.100q", count, names)
	}
}

// TestNothingRedirects, and what is not there or not possible says so.
func TestNothingRedirects(t *testing.T) {
	n := newNode(t)
	id, _ := n.add(1)
	for request, code := range map[string]int{
		"GET /": 404, "GET /v1": 404, "GET /v1/": 404, "GET /v1//volumes": 404, "GET /v1/volumes/": 400, "GET /v1/volumes/../usage": 400,
		"GET /v1/volumes/" + id + "/": 200, "GET /v1/volumes/" + id + "/x": 404, "GET /v1/volumes/" + id + "/files/": 404,
		"POST /v1/volumes": 405, "PUT /v1/volumes/" + id: 405, "DELETE /v1/volumes": 405, "DELETE /v1/volumes/" + id + "/files": 405,
		"POST /v1/volumes/" + id + "/bytes": 405, "HEAD /v1/usage": 405, "OPTIONS /v1/usage": 405, "GET /v1/volumes/csi-other": 404,
		"GET /v1/report": 200, "GET /v1/usage": 200,
	} {
		method, path, _ := strings.Cut(request, " ")
		answer, body := n.raw(method, path, nil, nil)
		if answer.StatusCode != code || code == 405 && answer.Header.Get("Allow") == "" {
			t.Errorf("%s: code %d %v, want %d", request, answer.StatusCode, answer.Header, code)
		}
		if code >= 400 && method != http.MethodHead && !strings.Contains(body, `"kind":"Status"`) {
			t.Errorf("%s: %q is not a status", request, body)
		}
	}
}
