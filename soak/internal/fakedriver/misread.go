package fakedriver

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/api"
)

// misread does what the driver does wrong with a request for files or bytes, on its way to the node's own handlers. What these
// refuse anyway is not touched.
func (r *run) misread(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.HandleFunc("GET /v1/volumes/{id}/files", func(w http.ResponseWriter, q *http.Request) {
		if r.cfg.Bug == ReadsMounts {
			r.unfold(next, w, r.outside(q))
			return
		}
		next.ServeHTTP(w, r.outside(q))
	})
	mux.HandleFunc("GET /v1/volumes/{id}/bytes", func(w http.ResponseWriter, q *http.Request) {
		switch r.cfg.Bug {
		case ReadingDelays:
			r.stuck.RLock()
			defer r.stuck.RUnlock()
		case ReadsWithTrace:
			r.touch(q)
		case ReadsBeside:
			q = beside(q)
		case ReadsHalf:
			w = &halved{ResponseWriter: w}
		case TarsLess:
			q = r.lessOf(q)
		}
		next.ServeHTTP(w, r.outside(q))
	})
	return mux
}

// asks returns what a request asks for, and where the data of its volume is, unless the handlers refuse it.
func (r *run) asks(q *http.Request) (v record, data, path string, ok bool) {
	v, ok = r.disk.get(q.PathValue("id"))
	p, err := paths.ParseRef(q.URL.Query().Get("path"))
	return v, r.data(v), p.String(), ok && err == nil
}

// insteadKey is that of the directory that a request reads in the place of the volume's, in its context.
type insteadKey struct{}

// instead returns that directory; empty if the request reads the volume's.
func instead(ctx context.Context) string {
	dir, _ := ctx.Value(insteadKey{}).(string)
	return dir
}

// outside lets a request read something that is not the volume's, if that is the bug.
func (r *run) outside(q *http.Request) *http.Request {
	v, data, path, ok := r.asks(q)
	if !ok || path == "" {
		return q
	}
	dir, inside := data, path
	switch r.cfg.Bug {
	case ReadsLinks:
		target, err := filepath.EvalSymlinks(filepath.Join(data, path))
		if err != nil || target == filepath.Join(data, path) {
			return q
		}
		if dir, inside = target, ""; !isDir(target) {
			dir, inside = filepath.Split(target)
		}
	case ReadsMounts:
		mounts, _ := mountsBelow(data) // what cannot be seen is not read
		for _, mount := range mounts {
			if rest, is := strings.CutPrefix(filepath.Join(data, path)+"/", mount+"/"); is {
				dir, inside = mount, rest
			}
		}
	case ReadsAnother:
		for _, other := range r.disk.all(false) {
			if other.id != v.id && exists(filepath.Join(r.data(other), path)) {
				dir = r.data(other)
				break
			}
		}
	}
	if dir == data {
		return q
	}
	p, err := paths.New(inside)
	if err != nil {
		return q
	}
	return asking(q.WithContext(context.WithValue(q.Context(), insteadKey{}, dir)), func(values url.Values) { values.Set("path", p.Ref()) })
}

// unfold answers with a list of files in which what is mounted in the volume is a part of it.
func (r *run) unfold(next http.Handler, w http.ResponseWriter, q *http.Request) {
	_, data, _, _ := r.asks(q)
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, q)
	maps.Copy(w.Header(), answer.Header())
	w.Header().Del("Content-Length")
	var list api.FileList
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil || answer.Code != http.StatusOK {
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // the client is gone
		return
	}
	for i, e := range slices.Backward(list.Entries) {
		if e.Type != api.Mount {
			continue
		}
		inside, _ := os.ReadDir(filepath.Join(data, e.Name)) // what is deeper down is not shown
		for at, one := range inside {
			shown := api.Entry{Name: one.Name(), Ref: e.Ref + "/" + url.PathEscape(one.Name()), Type: api.File}
			list.Entries = slices.Insert(list.Entries, i+1+at, shown)
		}
	}
	_ = json.NewEncoder(w).Encode(list) // the client is gone
}

// asking returns a request with other parameters.
func asking(q *http.Request, change func(url.Values)) *http.Request {
	q = q.Clone(q.Context())
	values := q.URL.Query()
	change(values)
	q.URL.RawQuery = values.Encode()
	return q
}

// beside asks for a part of a file that begins one byte further on.
func beside(q *http.Request) *http.Request {
	offset, err := strconv.ParseInt(q.URL.Query().Get("offset"), 10, 64)
	if err != nil {
		return q
	}
	return asking(q, func(values url.Values) { values.Set("offset", strconv.FormatInt(offset+1, 10)) })
}

// touch leaves a trace of a request in the file, whatever the mount's options say of access times.
func (r *run) touch(q *http.Request) {
	_, data, path, _ := r.asks(q)
	full := filepath.Join(data, path)
	if info, err := os.Lstat(full); err == nil && info.Mode().IsRegular() {
		_ = os.Chtimes(full, time.Now(), info.ModTime())
	}
}

// lessOf leaves a file out of an archive.
func (r *run) lessOf(q *http.Request) *http.Request {
	_, data, path, ok := r.asks(q)
	if !ok || q.URL.Query().Get("archive") != "tar" {
		return q
	}
	top, left := filepath.Join(data, path), ""
	_ = filepath.WalkDir(top, func(full string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // what cannot be read is not what is left out
		}
		// A pattern of other characters might mean more than the name.
		if p, err := paths.New(strings.TrimPrefix(full, top)); err == nil && p.Ref() == p.String() {
			left = p.String()
			return fs.SkipAll
		}
		return nil
	})
	if left == "" {
		return q
	}
	return asking(q, func(values url.Values) { values.Add("exclude", "./"+left) })
}

// halved passes on the first half of a file as if that were all of it.
type halved struct {
	http.ResponseWriter
	// left is how many bytes it still passes on.
	left int64
}

// Unwrap gives [http.ResponseController] what it controls.
func (h *halved) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// WriteHeader announces half of a file, and anything else as it is.
func (h *halved) WriteHeader(code int) {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(h.Header().Get(name), 10, 64) // the handlers have set it
		return n
	}
	h.left = math.MaxInt64
	if h.Header().Get(api.HeaderSize) != "" {
		half := number(api.HeaderSize) / 2
		h.left = max(0, min(number("Content-Length"), half-number(api.HeaderOffset)))
		h.Header().Set(api.HeaderSize, strconv.FormatInt(half, 10))
		h.Header().Set("Content-Length", strconv.FormatInt(h.left, 10))
	}
	h.ResponseWriter.WriteHeader(code)
}

// Write leaves out what is behind the half.
func (h *halved) Write(p []byte) (int, error) {
	n := min(int64(len(p)), h.left)
	h.left -= n
	if n == 0 {
		return len(p), nil
	}
	if n, err := h.ResponseWriter.Write(p[:n]); err != nil {
		return n, err
	}
	return len(p), nil
}
