package server

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// slowNode makes the node send one byte of a stream, and then no more until release is called.
func slowNode(n *testNode, length int) (release func()) {
	done := make(chan struct{})
	n.answers = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/bytes") {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(length))
		w.Header().Set("Katbox-Offset", "40")
		_, _ = io.WriteString(w, "a")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-done:
			_, _ = io.WriteString(w, strings.Repeat("b", length-1))
		case <-r.Context().Done():
		}
		return true
	}
	return func() { close(done) }
}

// firstByte reads the first byte of a stream: it comes although others do not follow.
func firstByte(t *testing.T, answer *http.Response) {
	t.Helper()
	first := make([]byte, 1)
	if _, err := io.ReadFull(answer.Body, first); err != nil || answer.StatusCode != 200 || first[0] != 'a' {
		t.Fatalf("the first byte: %d %q, %v", answer.StatusCode, first, err)
	}
}

func TestStreamsOfAUser(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, _ := n.put(1)
	release := slowNode(n, 2)
	log := list + "/" + name + "/log?path=x"
	var running []*http.Response
	for range maxForReader {
		answer := c.do("alice", http.MethodGet, log, nil, "")
		firstByte(t, answer)
		running = append(running, answer)
	}
	refused := c.do("alice", http.MethodGet, log, nil, "")
	if s := c.wantStatus("one stream more", refused, 429, "TooManyRequests"); refused.Header.Get("Retry-After") != "1" ||
		s.Details.RetryAfterSeconds != 1 {
		t.Errorf("one stream more: %+v, %v", s, refused.Header)
	}
	firstByte(t, c.do("admin", http.MethodGet, log, nil, ""))
	release()
	for _, answer := range running {
		if _, rest := c.whole(answer); rest != "b" {
			t.Errorf("the rest of a stream: %q", rest)
		}
	}
	eventually(t, "all streams of alice are over", func() bool {
		_, own := c.server.streams.Taken("alice")
		return own == 0
	})
	firstByte(t, c.do("alice", http.MethodGet, log, nil, ""))
}

// A gateway that stops breaks streams, and says where each goes on (T17).
func TestStop(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, _ := n.put(1)
	slowNode(n, 2)
	log := list + "/" + name + "/log?path=x"
	answer := c.do("alice", http.MethodGet, log, http.Header{"Audit-Id": {"audit-1"}}, "")
	firstByte(t, answer)
	c.server.Stop()
	if rest, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("the stream of a gateway that stops ends as if it were complete, with %q", rest)
	}
	line := c.wantLine(1)
	if line["next"] != "again with offset 41" || line["auditID"] != "audit-1" || line["cause"] != "the gateway stops" ||
		line["bytes"] != 1. {
		t.Errorf("log line %v", line)
	}
	c.wantStatus("a stream of a gateway that stops", c.do("alice", http.MethodGet, log, nil, ""), 503, "ServiceUnavailable")
	if answer, text := c.get("alice", list); answer.StatusCode != 200 {
		t.Errorf("a list of a gateway that stops: %d %s", answer.StatusCode, text)
	}
}

func TestStalledStreams(t *testing.T) {
	c := newCluster(t, func(s *Server) { s.stall = 50 * time.Millisecond })
	n := c.add("n1")
	name, path := n.put(1)
	log := list + "/" + name + "/log?path=x"
	slowNode(n, 2)
	if answer, err := c.try("alice", http.MethodGet, log, nil, ""); err == nil { // the node stalls
		defer answer.Body.Close()
		if rest, err := io.ReadAll(answer.Body); err == nil {
			t.Errorf("a stream that stalls ends as if it were complete, with %q", rest)
		}
	}
	if line := c.wantLine(1); line["cause"] != errStalled.Error() {
		t.Errorf("log line %v", line)
	}
	n.answers = nil
	must(t, os.Truncate(pathOf(t, path, "x"), 1<<30))
	if answer, err := c.try("alice", http.MethodGet, log, nil, ""); err == nil { // the client does not read
		defer answer.Body.Close()
	}
	if line := c.wantLine(2); line["cause"] != errStalled.Error() || line["code"] != 200. {
		t.Errorf("log line %v", line)
	}
}

func pathOf(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	write(t, path, "")
	return path
}

func TestSilentNode(t *testing.T) {
	c := newCluster(t, func(s *Server) { s.node, s.begin = 50*time.Millisecond, 50*time.Millisecond })
	n := c.add("n1")
	name, _ := n.put(1)
	n.answers = func(_ http.ResponseWriter, r *http.Request) bool {
		silent := strings.HasSuffix(r.URL.Path, "/bytes") || strings.HasSuffix(r.URL.Path, "/files")
		if silent {
			<-r.Context().Done()
		}
		return silent
	}
	one := list + "/" + name
	c.wantStatus("files", c.do("alice", http.MethodGet, one+"/files", nil, ""), 504, "Timeout")
	c.wantStatus("bytes", c.do("alice", http.MethodGet, one+"/log?path=x", nil, ""), 504, "Timeout")
}

// A volume that goes while it is read ends the stream (T33).
func TestLostVolume(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, path := n.put(1)
	must(t, os.Truncate(pathOf(t, path, "x"), 1<<30))
	answer := c.do("alice", http.MethodGet, list+"/"+name+"/log?path=x", nil, "")
	first := make([]byte, 1)
	_, err := io.ReadFull(answer.Body, first)
	must(t, err)
	n.volumes.lose(1, volume.ErrGone)
	if n, err := io.Copy(io.Discard, answer.Body); err == nil {
		t.Errorf("%d bytes of a volume that went, and they look complete", n)
	}
	if line := c.wantLine(1); line["code"] != 200. || line["cause"] == nil {
		t.Errorf("log line %v", line)
	}
}

// A client that leaves frees what its stream holds.
func TestClientLeaves(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, path := n.put(1)
	must(t, os.Truncate(pathOf(t, path, "x"), 1<<30))
	answer := c.do("alice", http.MethodGet, list+"/"+name+"/log?path=x", nil, "")
	answer.Body.Close()
	if line := c.wantLine(1); line["code"] != 200. || line["cause"] == nil {
		t.Errorf("log line %v", line)
	}
	eventually(t, "no stream runs", func() bool {
		running, _ := c.server.streams.Taken("alice")
		return running == 0
	})
}
