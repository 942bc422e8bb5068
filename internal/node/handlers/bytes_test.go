package handlers

import (
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/asked"

	"golang.org/x/sys/unix"
)

func TestPartsOfAFile(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	write(t, filepath.Join(dir, "log"), "one\ntwo\nthree\n")
	info, err := os.Stat(filepath.Join(dir, "log"))
	must(t, err)
	tag := fmt.Sprintf(`"%x-%x-%x"`, info.Sys().(*syscall.Stat_t).Ino, info.Size(), info.ModTime().UnixNano())
	for _, tt := range []struct {
		query, header string
		code          int
		body, ranged  string
	}{
		{"", "", 200, "one\ntwo\nthree\n", ""},
		{"offset=4", "", 200, "two\nthree\n", ""},
		{"offset=4&limit=3", "", 200, "two", ""},
		{"limit=1000", "", 200, "one\ntwo\nthree\n", ""},
		{"offset=-6", "", 200, "three\n", ""},
		{"offset=-6&limit=2", "", 200, "th", ""},
		{"offset=-60", "", 200, "one\ntwo\nthree\n", ""},
		{"offset=14", "", 200, "", ""},
		{"offset=15", "", 416, "", "bytes */14"},
		{"tailLines=1", "", 200, "three\n", ""},
		{"tailLines=2", "", 200, "two\nthree\n", ""},
		{"tailLines=9", "", 200, "one\ntwo\nthree\n", ""},
		{"tailBytes=3", "", 200, "ee\n", ""},
		{"tailBytes=99", "", 200, "one\ntwo\nthree\n", ""},
		{"", "bytes=0-2", 206, "one", "bytes 0-2/14"},
		{"", "bytes=4-", 206, "two\nthree\n", "bytes 4-13/14"},
		{"", "bytes=4-999", 206, "two\nthree\n", "bytes 4-13/14"},
		{"", "bytes=-6", 206, "three\n", "bytes 8-13/14"},
		{"", "bytes=-99", 206, "one\ntwo\nthree\n", "bytes 0-13/14"},
		{"", "bytes=14-", 416, "", "bytes */14"},
		{"", "bytes=-0", 416, "", "bytes */14"},
		{"", "bytes=3-2", 416, "", "bytes */14"},
		{"", "bytes=0-1,3-4", 416, "", "bytes */14"},
		{"", "bytes=x", 416, "", "bytes */14"},
		{"", "bytes=99999999999999999999-", 416, "", "bytes */14"},
		{"", "lines=1-2", 200, "one\ntwo\nthree\n", ""},
		{"", "bytes=4-|" + tag, 206, "two\nthree\n", "bytes 4-13/14"},
		{"", `bytes=4-|"other"`, 200, "one\ntwo\nthree\n", ""},
		{"", "bytes=4-|Wed, 21 Oct 2015 07:28:00 GMT", 200, "one\ntwo\nthree\n", ""},
	} {
		query, err := url.ParseQuery("path=log&" + tt.query)
		must(t, err)
		header := http.Header{}
		if ranged, condition, _ := strings.Cut(tt.header, "|"); ranged != "" {
			header.Set("Range", ranged)
			if condition != "" {
				header.Set("If-Range", condition)
			}
		}
		name := tt.query + " " + tt.header
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			answer, body := n.raw(method, "/v1/volumes/"+id+"/bytes", query, header)
			if answer.StatusCode != tt.code || answer.Header.Get("Content-Range") != tt.ranged {
				t.Errorf("%s %s: code %d, Content-Range %q; want %d and %q", method, name, answer.StatusCode,
					answer.Header.Get("Content-Range"), tt.code, tt.ranged)
			}
			if tt.code == 416 {
				continue
			}
			want := tt.body
			if method == http.MethodHead {
				want = ""
			}
			if body != want || answer.ContentLength != int64(len(tt.body)) {
				t.Errorf("%s %s: %q, length %d; want %q", method, name, body, answer.ContentLength, want)
			}
			for key, value := range map[string]string{
				"ETag": tag, "Accept-Ranges": "bytes", "Katbox-Size": "14", "Katbox-Node": "node-1",
				"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
				"Content-Security-Policy": "sandbox; default-src 'none'", "Cross-Origin-Resource-Policy": "same-origin",
				"Content-Disposition": `attachment; filename="log"; filename*=UTF-8''log`,
			} {
				if got := answer.Header.Get(key); got != value {
					t.Errorf("%s %s: %s is %q, want %q", method, name, key, got, value)
				}
			}
		}
	}
}

// TestOnlyRegularFilesAreRead: all else is listed with its type, and never opened. A FIFO
// without a writer would hold the reader for ever.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755), os.Symlink("/etc/passwd", filepath.Join(dir, "outside")),
		os.Symlink("..", filepath.Join(dir, "up")), os.Symlink("self", filepath.Join(dir, "self")),
		os.Symlink("nowhere", filepath.Join(dir, "dangling")),
		os.Symlink("sub", filepath.Join(dir, "way")), unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	write(t, filepath.Join(dir, "sub/file"), "inside")
	short, err := os.MkdirTemp("", "api")
	must(t, err)
	defer os.RemoveAll(short)
	l, err := net.Listen("unix", filepath.Join(short, "s"))
	must(t, err)
	defer l.Close()
	must(t, os.Link(filepath.Join(short, "s"), filepath.Join(dir, "socket")))

	for path, want := range map[string]struct {
		kind  api.EntryType
		cause api.CauseReason
	}{
		"sub": {api.Directory, api.IsDirectory}, "": {api.Directory, api.IsDirectory}, "outside": {api.Symlink, api.IsSymlink},
		"up":   {api.Symlink, api.IsSymlink},
		"self": {api.Symlink, api.IsSymlink}, "dangling": {api.Symlink, api.IsSymlink},
		"fifo": {api.FIFO, api.NotRegularFile}, "socket": {api.Socket, api.NotRegularFile},
	} {
		_, err := n.read(id, api.BytesQuery{Path: path})
		wantCode(t, "read "+path, err, 400, want.cause)
		list, err := n.client.Files(t.Context(), id, api.FilesQuery{Path: path, Stat: true})
		if err != nil || len(list.Entries) != 1 || list.Entries[0].Type != want.kind {
			t.Errorf("%q: %+v, %v; want the type %s", path, list, err, want.kind)
		}
	}
	for _, path := range []string{"way/file", "up/x", "outside/x"} {
		_, err := n.read(id, api.BytesQuery{Path: path})
		wantCode(t, "read "+path, err, 400, api.IsSymlink)
	}
	_, err = n.read(id, api.BytesQuery{Path: "missing"})
	wantCode(t, "a missing file", err, 404)
	_, err = n.client.Files(t.Context(), id, api.FilesQuery{Path: "sub/file"})
	wantCode(t, "a list of a file", err, 400, api.NotDirectory)
	_, err = n.client.Files(t.Context(), id, api.FilesQuery{Continue: ".."})
	wantCode(t, "a continue that is a path", err, 400, api.BadContinue)
}

// TestEveryPathIsBadOrInside: none leads out of the volume.
func TestEveryPathIsBadOrInside(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	must(t, os.Mkdir(filepath.Join(dir, "a"), 0o755))
	write(t, filepath.Join(dir, "a/b"), "inside")
	write(t, filepath.Join(dir, "../secret"), "outside")
	for _, path := range []string{"..", "../secret", "a/../..", "a/../../secret", "/etc/passwd", "a//b", ".", "a/.", "..%2Fsecret",
		"%2e%2e/secret", "%2E%2E%2Fsecret", "a%2F..%2F..%2Fsecret", "a\x00b", "a%00b", "%", "a%zz", "a/b/", "/a/b", "//a/b", "",
		strings.Repeat("x", 4097), strings.Repeat("d/", 5000)} {
		for _, archive := range []bool{false, true} {
			body, err := n.read(id, api.BytesQuery{Path: path, Archive: archive})
			if err == nil && !archive && body != "inside" || strings.Contains(body, "outside") {
				t.Errorf("%q: %q", path, body)
			}
			if err != nil {
				wantCode(t, fmt.Sprintf("%q", path), err, map[bool]int{true: 404, false: 400}[path == "/etc/passwd"])
			}
		}
		if list, err := n.client.Files(t.Context(), id, api.FilesQuery{Path: path}); err == nil && path != "" {
			t.Errorf("list of %q: %+v", path, list)
		}
	}
}

// TestHostileNames: what a list calls a file leads to that file, and no name breaks a header.
func TestHostileNames(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	names := []string{"new\nline", "car\r\nriage: x", "esc\x1b[31m", `quo"te`, "back\\slash", "per%cent", "per%41", "se;mi", "in\xffvalid",
		"\xf0\x28",
		"<img onerror=alert(1)>", "\u202egnp.exe", " leading", "ümläut", "日本", "plus+&=?#", "'", "a\x7fb", "-rf", strings.Repeat("ä", 127)}
	for i, name := range names {
		write(t, filepath.Join(dir, name), strconv.Itoa(i))
	}
	list, err := n.client.Files(t.Context(), id, api.FilesQuery{})
	if err != nil || len(list.Entries) != len(names) {
		t.Fatalf("%d entries, %v", len(list.Entries), err)
	}
	seen := map[string]bool{}
	for _, e := range list.Entries {
		answer, body := n.raw(http.MethodGet, "/v1/volumes/"+id+"/bytes", url.Values{"path": {e.Ref}}, nil)
		index, err := strconv.Atoi(body)
		if err != nil || answer.StatusCode != 200 {
			t.Errorf("%q: code %d, %q", e.Ref, answer.StatusCode, body)
			continue
		}
		seen[names[index]] = true
		want := strings.ToValidUTF8(names[index], "\ufffd")
		if e.Name != want {
			t.Errorf("%q is shown as %q", names[index], e.Name)
		}
		kind, parameters, err := mime.ParseMediaType(answer.Header.Get("Content-Disposition"))
		if err != nil || kind != "attachment" || parameters["filename"] != want || len(parameters) != 1 {
			t.Errorf("%q: %q is %q %q, %v", names[index], answer.Header.Get("Content-Disposition"), kind, parameters, err)
		}
		if answer.Header.Get("Content-Type") != asked.TypeText || answer.Header.Get("Riage") != "" {
			t.Errorf("%q breaks the header: %v", names[index], answer.Header)
		}
	}
	if len(seen) != len(names) {
		t.Errorf("read %d of %d files", len(seen), len(names))
	}
}

func TestContentType(t *testing.T) {
	for content, want := range map[string]string{
		"": asked.TypeText, "text\n": asked.TypeText, "\x1b[31mred\x1b[0m\ttab": asked.TypeText, "a\x00b": asked.TypeBytes,
		"\xff\xfe": asked.TypeBytes, "\x7fELF": asked.TypeBytes,
		"<html><script>": asked.TypeText, "%PDF-1.4": asked.TypeText, strings.Repeat("x", 511) + "ä": asked.TypeText,
		strings.Repeat("x", 511) + "\xff": asked.TypeBytes,
		strings.Repeat("x", 600) + "\x00": asked.TypeText, "cut \xc3": asked.TypeBytes,
	} {
		n := newNode(t)
		id, dir := n.add(1)
		write(t, filepath.Join(dir, "f"), content)
		s, err := n.client.Bytes(t.Context(), id, api.BytesQuery{Path: "f"})
		if err != nil || s.ContentType != want {
			t.Errorf("%q: %q, %v, want %q", content, s.ContentType, err, want)
			continue
		}
		s.Close()
	}
}

// TestSparseFile: what is not there costs nothing.
func TestSparseFile(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	const size = 1 << 40
	f, err := os.Create(filepath.Join(dir, "huge"))
	must(t, err)
	_, err = f.WriteAt([]byte("here"), 999<<30)
	must(t, err, f.Truncate(size), f.Close())
	list, err := n.client.Files(t.Context(), id, api.FilesQuery{})
	if err != nil || len(list.Entries) != 1 || list.Entries[0].Size != size || list.Entries[0].Allocated > 1<<20 {
		t.Errorf("%+v, %v", list, err)
	}
	if got, err := n.read(id, api.BytesQuery{Path: "huge", Offset: 999<<30 - 1, Limit: 6}); err != nil || got != "\x00here\x00" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := n.read(id, api.BytesQuery{Path: "huge", Archive: true}); err != nil || len(got) > 1<<20 {
		t.Errorf("an archive of %d bytes, %v", len(got), err)
	}
}

// TestReadingLeavesNoTrace: not even the access time changes.
func TestReadingLeavesNoTrace(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	path := filepath.Join(dir, "f")
	write(t, path, "content")
	long := time.Unix(1, 0)
	must(t, os.Chtimes(path, long, time.Unix(2, 0)))
	before, err := os.Stat(path)
	must(t, err)
	for _, q := range []api.BytesQuery{{Path: "f"}, {Path: "f", TailLines: 1}, {Archive: true}} {
		_, err := n.read(id, q)
		must(t, err)
	}
	_, err = n.client.Files(t.Context(), id, api.FilesQuery{Path: "f", Stat: true})
	must(t, err)
	after, err := os.Stat(path)
	must(t, err)
	if *before.Sys().(*syscall.Stat_t) != *after.Sys().(*syscall.Stat_t) {
		t.Errorf("before %+v, after %+v", before.Sys(), after.Sys())
	}
}
