package server

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/sealed"
)

func TestFiles(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, path := n.put(1)
	must(t, os.Mkdir(filepath.Join(path, "out"), 0o755))
	write(t, filepath.Join(path, "out", "a\xffb"), "abc")
	must(t, os.Symlink("/etc/shadow", filepath.Join(path, "out", "l")))
	files := list + "/" + name + "/files"
	answer, text := c.get("alice", files+"?path=/out&timeout=5s")
	if answer.StatusCode != 200 || !strings.Contains(text, `"name":"a`+"\ufffd"+`b","ref":"out/a%FFb","type":"file","size":3`) ||
		!strings.Contains(text, `"type":"symlink","target":"/etc/shadow"`) {
		t.Errorf("files: %d %s", answer.StatusCode, text)
	}
	wantSafe(t, "files", answer)
	if answer, text := c.get("alice", files+"?path=out/l&stat=true"); answer.StatusCode != 200 || !strings.Contains(text,
		`"type":"symlink"`) {
		t.Errorf("one entry: %d %s", answer.StatusCode, text)
	}
	for query, want := range map[string]int{
		"?path=nothing": 404, "?path=..": 400, "?path=a//b": 400, "?path=%00": 400, "?limit=10001": 400, "?limit=x": 400, "?depth=17": 400,
		"?stat=yes": 400,
		"?tail=5":   400, "?path=a&path=b": 400, "?path=" + strings.Repeat("a", 4097): 400, "?path=out/l": 400,
	} {
		if answer, text := c.get("alice", files+query); answer.StatusCode != want {
			t.Errorf("files%.80s: %d %s, want %d", query, answer.StatusCode, text, want)
		}
	}
	line := c.wantLine(14)
	if line["code"] == nil || line["subresource"] != "files" {
		t.Errorf("log line %v", line)
	}
}

func TestBytes(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, path := n.put(1)
	write(t, filepath.Join(path, "log.txt"), "one\ntwo\nthree\n")
	write(t, filepath.Join(path, `x"<img onerror>.html`), "<script>\x00")
	log := list + "/" + name + "/log"
	for _, tt := range []struct {
		query, ranged string
		code          int
		want          string
	}{
		{"?path=log.txt", "", 200, "one\ntwo\nthree\n"}, {"?path=/log.txt&timeout=10s&pretty=true", "", 200, "one\ntwo\nthree\n"},
		{"?path=log.txt&offset=4", "", 200, "two\nthree\n"}, {"?path=log.txt&offset=-6", "", 200, "three\n"},
		{"?path=log.txt&offset=4&limit=3", "", 200, "two"},
		{"?path=log.txt&tailLines=2", "", 200, "two\nthree\n"}, {"?path=log.txt&tailBytes=3", "", 200, "ee\n"},
		{"?path=log.txt&compress=none", "", 200, "one\ntwo\nthree\n"},
		{"?path=log.txt", "bytes=4-6", 206, "two"}, {"?path=log.txt", "bytes=-3", 206, "ee\n"}, {"?path=log.txt", "bytes=8-", 206,
			"three\n"}, {"?path=log.txt", "lines=1", 200, "one\ntwo\nthree\n"},
	} {
		answer, text := c.whole(c.do("alice", http.MethodGet, log+tt.query, http.Header{"Range": {tt.ranged}}, ""))
		if answer.StatusCode != tt.code || text != tt.want || answer.Header.Get("Content-Length") != strconv.Itoa(len(tt.want)) {
			t.Errorf("%s %s: %d %q (%s bytes), want %d %q", tt.query, tt.ranged, answer.StatusCode, text, answer.Header.Get("Content-Length"),
				tt.code, tt.want)
		}
	}
	answer, text := c.whole(c.do("alice", http.MethodGet, log+"?path=log.txt", http.Header{"Range": {"bytes=4-6"},
		"Accept-Encoding": {"gzip"}}, ""))
	wantSafe(t, "bytes", answer)
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Content-Disposition": `attachment; filename="log.txt"; filename*=UTF-8''log.txt`,
		"Accept-Ranges": "bytes",
		"Katbox-Size":   "14", "Katbox-Offset": "4", "Katbox-Node": "n1", "Content-Range": "bytes 4-6/14", "Content-Encoding": "",
	} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("header %s of %q is %q, want %q", name, text, got, want)
		}
	}
	tag := answer.Header.Get("ETag")
	for condition, want := range map[string]int{tag: 206, `"other"`: 200} {
		header := http.Header{"Range": {"bytes=4-6"}, "If-Range": {condition}}
		if answer, text := c.whole(c.do("alice", http.MethodGet, log+"?path=log.txt", header, "")); answer.StatusCode != want {
			t.Errorf("If-Range %s: %d %q, want %d", condition, answer.StatusCode, text, want)
		}
	}
	answer, text = c.whole(c.do("alice", http.MethodHead, log+"?path=log.txt", nil, ""))
	if answer.StatusCode != 200 || text != "" || answer.Header.Get("Content-Length") != "14" || answer.Header.Get("ETag") != tag ||
		tag == "" {
		t.Errorf("HEAD: %d %q, %v", answer.StatusCode, text, answer.Header)
	}
	wantSafe(t, "HEAD", answer)
	answer, text = c.get("alice", log+"?path=x%22%3Cimg%20onerror%3E.html")
	if text != "<script>\x00" || answer.Header.Get("Content-Type") != "application/octet-stream" ||
		answer.Header.Get("Content-Disposition") != `attachment; filename="x__img onerror_.html"; `+
			`filename*=UTF-8''x%22%3Cimg%20onerror%3E.html` {
		t.Errorf("a hostile file: %q %v", text, answer.Header)
	}
	answer = c.do("alice", http.MethodGet, log+"?path=log.txt", http.Header{"Range": {"bytes=99-"}}, "")
	if c.wantStatus("a range outside", answer, 416, "RangeNotSatisfiable"); answer.Header.Get("Content-Range") != "bytes */14" {
		t.Errorf("a range outside: %v", answer.Header)
	}
	must(t, os.Mkdir(filepath.Join(path, "dir"), 0o755))
	must(t, os.Symlink("log.txt", filepath.Join(path, "link")))
	for query, cause := range map[string]string{
		"": "BadPath", "?path=": "IsDirectory", "?path=dir": "IsDirectory", "?path=link": "Symlink", "?path=..": "BadPath",
		"?path=/etc//passwd":     "BadPath",
		"?path=log.txt&offset=x": "BadParameter", "?path=log.txt&tailLines=0": "BadParameter",
		"?path=log.txt&offset=1&tailLines=1": "BadParameter",
		"?path=log.txt&tail=1":               "BadParameter", "?path=log.txt&compress=gzip": "BadParameter",
		"?path=log.txt&archive=tar&compress=lz4": "BadParameter",
		"?path=log.txt&archive=zip":              "BadParameter", "?path=log.txt&exclude=a": "BadParameter", "?path=a&path=b": "BadParameter",
		"?path=log.txt&follow=true": "BadParameter",
	} {
		s := c.wantStatus(query, c.do("alice", http.MethodGet, log+query, nil, ""), 400, "BadRequest")
		if s.Details == nil || len(s.Details.Causes) != 1 || string(s.Details.Causes[0].Type) != cause {
			t.Errorf("%s: %+v, want the cause %s", query, s.Details, cause)
		}
	}
	if s := c.wantStatus("a path that is not there", c.do("alice", http.MethodGet, log+"?path=nothing", nil, ""), 404,
		"NotFound"); s.Details.Name != name {
		t.Errorf("a path that is not there: %+v", s)
	}
	c.wantStatus("a long range", c.do("alice", http.MethodGet, log+"?path=log.txt", http.Header{"Range": {"bytes=" + strings.Repeat("1",
		300)}}, ""), 400, "BadRequest")
	c.wantStatus("a body", c.do("alice", http.MethodGet, log+"?path=log.txt", nil, "body"), 400, "BadRequest")
}

// archiveOf wants a whole tar, and returns the names in it.
func archiveOf(t *testing.T, from io.Reader) (names []string) {
	t.Helper()
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		must(t, err)
		names = append(names, h.Name)
	}
}

func TestArchive(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, path := n.put(1)
	must(t, os.Mkdir(filepath.Join(path, "out"), 0o755))
	write(t, filepath.Join(path, "out", "log.txt"), "hello")
	write(t, filepath.Join(path, "out", "core"), "hello")
	log := list + "/" + name + "/log?path=out&archive=tar&exclude=core"
	answer, text := c.get("alice", log)
	if names := fmt.Sprint(archiveOf(t, strings.NewReader(text))); !strings.Contains(names, "log.txt") || strings.Contains(names, "core") {
		t.Errorf("archive with %s", names)
	}
	wantSafe(t, "archive", answer)
	if answer.Header.Get("Content-Type") != "application/x-tar" ||
		answer.Header.Get("Content-Disposition") != `attachment; filename="out.tar"; filename*=UTF-8''out.tar` ||
		len(answer.Trailer) > 0 || answer.Header.Get("Katbox-Seal") != "" {
		t.Errorf("archive with header %v, trailer %v", answer.Header, answer.Trailer)
	}
	resumed, rest := c.whole(c.do("alice", http.MethodGet, log, http.Header{"Range": {"bytes=512-"},
		"If-Range": {answer.Header.Get("ETag")}}, ""))
	if resumed.StatusCode != 206 || rest != text[512:] || resumed.Header.Get("Content-Range") != "bytes 512-/*" ||
		resumed.Header.Get("Katbox-Offset") != "512" {
		t.Errorf("the rest of an archive: %d, %d of %d bytes, %v", resumed.StatusCode, len(rest), len(text), resumed.Header)
	}
	answer, packed := c.whole(c.do("alice", http.MethodGet, log+"&compress=gzip", http.Header{"Range": {"bytes=512-"}}, ""))
	unpacked, err := gzip.NewReader(strings.NewReader(packed))
	must(t, err)
	if names := fmt.Sprint(archiveOf(t, unpacked)); !strings.Contains(names, "log.txt") {
		t.Errorf("compressed archive with %s", names)
	}
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "application/gzip" || answer.Header.Get("Content-Encoding") != "" ||
		answer.Header.Get("Content-Disposition") != `attachment; filename="out.tar.gz"; filename*=UTF-8''out.tar.gz` ||
		answer.Header.Get("Accept-Ranges") != "none" {
		t.Errorf("compressed archive: %d, header %v", answer.StatusCode, answer.Header)
	}
	if answer, text := c.whole(c.do("alice", http.MethodHead, log, nil, "")); answer.StatusCode != 200 || text != "" {
		t.Errorf("HEAD: %d %q", answer.StatusCode, text)
	}
}

// A node that lies about its bytes cannot make a browser show them, nor a stream look complete.
func TestLyingNode(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, _ := n.put(1)
	log := list + "/" + name + "/log?path=x"
	answers := func(code int, body string, header ...string) {
		n.answers = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/bytes") {
				return false
			}
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	answers(200, "abc", "Content-Length", "3", "Content-Type", "text/html", "Content-Disposition", "inline", "Set-Cookie", "a=b", "ETag",
		"x", "Katbox-Size", "many",
		"Katbox-Node", "n2", "Content-Security-Policy", "", "Content-Encoding", "br", "Access-Control-Allow-Origin", "*")
	answer, text := c.get("alice", log)
	wantSafe(t, "a lie", answer)
	for name, want := range map[string]string{
		"Content-Type": "application/octet-stream", "Content-Disposition": noName, "Set-Cookie": "", "ETag": "", "Katbox-Size": "",
		"Katbox-Node": "n1", "Content-Encoding": "",
		"Access-Control-Allow-Origin": "",
	} {
		if got := answer.Header.Get(name); got != want || text != "abc" {
			t.Errorf("header %s of %q is %q, want %q", name, text, got, want)
		}
	}
	for _, code := range []int{201, 204, 302, 304, 401, 403, 405, 500} {
		answers(code, "", "Location", "http://elsewhere/")
		if answer := c.do("alice", http.MethodGet, log, nil, ""); answer.StatusCode < 500 || answer.Header.Get("Location") != "" {
			t.Errorf("a node that answers with %d: %d, %v", code, answer.StatusCode, answer.Header)
		}
	}
	n.answers = func(w http.ResponseWriter, r *http.Request) bool { // no length
		if strings.HasSuffix(r.URL.Path, "/bytes") {
			_, _ = io.WriteString(w, "abc")
			_ = http.NewResponseController(w).Flush()
			return true
		}
		return false
	}
	c.wantStatus("a file without a length", c.do("alice", http.MethodGet, log, nil, ""), 500, "InternalError")
	wantCut := func(what, query string) {
		t.Helper()
		answer, err := c.try("alice", http.MethodGet, log+query, nil, "")
		if err != nil {
			return // it was cut before the header came
		}
		defer answer.Body.Close()
		if text, err := io.ReadAll(answer.Body); err == nil || answer.StatusCode != 200 {
			t.Errorf("%s: %d, and %d bytes that look complete", what, answer.StatusCode, len(text))
		}
	}
	answers(200, "abc", "Content-Length", "4")
	wantCut("a file that is too short", "")
	// Without a seal, and with one that says what is wrong.
	const word = "abcdefghijklmnopqrst"
	for what, notes := range map[string]*sealed.Notes{"no seal": nil, "a fault": {Fault: "2 files changed: a\u00e9"}} {
		n.answers = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/bytes") {
				return false
			}
			asked := r.Header.Get(sealed.Header)
			w.Header().Set(sealed.Header, asked)
			body := sealed.NewWriter(w, asked)
			_, _ = io.WriteString(body, "abc")
			if notes != nil {
				_ = body.Seal(*notes) // the reader finds out
			}
			return true
		}
		for _, query := range []string{"&archive=tar", "&archive=tar&compress=gzip"} {
			wantCut("an archive with "+what, query)
			answer, err := c.try("alice", http.MethodGet, log+query, http.Header{sealed.Header: {word}}, "")
			if err != nil {
				continue // it was cut before the header came
			}
			defer answer.Body.Close()
			s := sealed.NewReader(answer.Body, word)
			_, err = io.ReadAll(s)
			if fault := (*sealed.FaultError)(nil); notes != nil && (!errors.As(err, &fault) || fault.Fault != "2 files changed: a??") || err == nil {
				t.Errorf("a sealed archive with %s: %v", what, err)
			}
		}
	}
	answers(200, "abc")
	c.wantStatus("an older node", c.do("alice", http.MethodGet, log+"&archive=tar", nil, ""), 503, "ServiceUnavailable")
	c.wantStatus("a bad word", c.do("alice", http.MethodGet, log+"&archive=tar", http.Header{sealed.Header: {"a b"}}, ""), 400, "BadRequest")
}

func TestLogLines(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, path := n.put(1)
	write(t, filepath.Join(path, "a\nb"), "hello")
	one := list + "/" + name
	c.whole(c.do("alice", http.MethodGet, one+"/log?path=a%250Ab", http.Header{"Audit-Id": {"id-1"}}, ""))
	line := c.wantLine(1)
	for key, want := range map[string]any{
		"auditID": "id-1", "user": "alice", "verb": "get", "namespace": "ci", "name": name, "subresource": "log", "path": `"a%0Ab"`,
		"code": 200., "bytes": 5.,
	} {
		if line[key] != want {
			t.Errorf("%s is %v in the log, want %v", key, line[key], want)
		}
	}
	if _, ok := line["next"]; ok || line["cause"] != nil || line["duration"] == "" {
		t.Errorf("log line %v", line)
	}
	c.whole(c.do("bob", http.MethodDelete, one, http.Header{"Audit-Id": {strings.Repeat("i", 99)}}, ""))
	line = c.wantLine(2)
	if line["user"] != "bob" || line["verb"] != "delete" || line["code"] != 403. || line["auditID"] != strings.Repeat("i", 64) {
		t.Errorf("log line %v", line)
	}
	c.whole(c.do("", http.MethodGet, one, nil, ""))
	if line = c.wantLine(3); line["user"] != "" || line["code"] != 401. || line["auditID"] == "" {
		t.Errorf("log line %v", line)
	}
	c.get("alice", base) // discovery is for debugging
	c.get("alice", "/livez")
	c.get("alice", base+"/retainedvolumes")
	c.wantLine(4)
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "Config.Authenticator") {
		t.Errorf("a server without anything: %v", err)
	}
}
