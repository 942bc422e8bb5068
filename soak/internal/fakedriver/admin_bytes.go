package fakedriver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/api"
)

// pieceSize is how many bytes it sends at a time.
const pieceSize = 64 << 10

// errLost ends a stream whose volume goes.
var errLost = errors.New("the volume went")

// serveBytes streams a file, a part of it, or a tar.
func (r *run) serveBytes(w http.ResponseWriter, q *http.Request) {
	id, values := q.PathValue("id"), q.URL.Query()
	path, err := pathOf(values)
	if err != nil {
		fail(w, err)
		return
	}
	v, reader, err := r.read(id)
	if err != nil {
		fail(w, err)
		return
	}
	defer r.stopReading(id, reader)
	if r.cfg.Bug == ReadingDelays {
		r.stuck.RLock()
		defer r.stuck.RUnlock()
	}
	if r.cfg.Bug != ReadsOn {
		// A write that the client keeps waiting ends at once.
		stop := context.AfterFunc(reader.lost, func() {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) // the connection is gone
		})
		defer stop()
	}
	out := &stream{run: r, reader: reader, to: w}
	if from, ok := strings.CutPrefix(q.Header.Get("Range"), "bytes="); ok {
		out.skip, err = strconv.ParseInt(strings.TrimSuffix(from, "-"), 10, 64)
		if err != nil {
			fail(w, badRequest(api.BadParameter, "bad range"))
			return
		}
	}
	if values.Get("archive") == "tar" {
		r.serveTar(w, q, v, path, out)
		return
	}
	r.serveFile(w, v, path, values, out)
}

// serveFile streams a file or a part of it.
func (r *run) serveFile(w http.ResponseWriter, v record, path string, values url.Values, out *stream) {
	f, size, err := r.openFile(v, path)
	if err != nil {
		fail(w, err)
		return
	}
	defer f.Close()
	if r.cfg.Bug == ReadsHalf {
		size /= 2
	}
	from, to, err := partOf(f, size, values)
	if err != nil {
		fail(w, err)
		return
	}
	from, out.skip = min(from+out.skip, to), 0
	if r.cfg.Bug == ReadsBeside && from > 0 && to < size {
		from, to = from+1, to+1
	}
	w.Header().Set("Katbox-Size", fmt.Sprint(size))
	w.Header().Set("Katbox-Offset", fmt.Sprint(from))
	w.Header().Set("Content-Length", fmt.Sprint(to-from))
	if _, err := io.CopyBuffer(out, io.NewSectionReader(f, from, to-from), make([]byte, pieceSize)); err != nil {
		panic(http.ErrAbortHandler) // so that the client sees it
	}
}

// openFile opens a regular file.
func (r *run) openFile(v record, path string) (*os.File, int64, error) {
	if r.cfg.Bug == ReadsAnother {
		v = r.another(v, path)
	}
	full, info, err := r.find(v, path)
	switch {
	case err != nil:
		return nil, 0, err
	case info.IsDir():
		return nil, 0, badRequest(api.IsDirectory, "it is a directory")
	case !info.Mode().IsRegular():
		return nil, 0, badRequest(api.NotRegularFile, "it is no regular file")
	}
	flags := unix.O_RDONLY | unix.O_NOATIME
	if r.cfg.Bug == ReadsWithTrace {
		// Whatever the mount's options say of access times.
		_ = os.Chtimes(full, time.Now(), info.ModTime())
	}
	f, err := os.OpenFile(full, flags, 0)
	return f, info.Size(), err
}

// another is another retained volume that has a file of that path, if there is one.
func (r *run) another(v record, path string) record {
	for _, other := range r.disk.all(false) {
		if other.id != v.id && exists(filepath.Join(r.data(other), path)) {
			return other
		}
	}
	return v
}

// partOf is the part of a file that is asked for.
func partOf(f io.ReaderAt, size int64, values url.Values) (from, to int64, err error) {
	number := func(name string) int64 {
		n, bad := strconv.ParseInt(cmp.Or(values.Get(name), "0"), 10, 64)
		if bad != nil {
			err = badRequest(api.BadParameter, "bad "+name)
		}
		return n
	}
	offset, limit, tail, lines := number("offset"), number("limit"), number("tailBytes"), number("tailLines")
	to = size
	switch {
	case err != nil:
		return 0, 0, err
	case tail > 0:
		return max(0, size-tail), size, nil
	case lines > 0:
		from, err = tailOf(f, size, lines)
		return from, size, err
	case offset < 0:
		from = max(0, size+offset)
	default:
		from = min(offset, size)
	}
	if limit > 0 {
		to = min(to, from+limit)
	}
	return from, to, nil
}

// tailOf is where the last lines of a file begin. A line break at the very end
// ends the last line.
func tailOf(f io.ReaderAt, size, lines int64) (int64, error) {
	const most = 8 << 20
	start := max(0, size-most)
	last := make([]byte, size-start)
	if _, err := f.ReadAt(last, start); err != nil && err != io.EOF {
		return 0, err
	}
	for i := len(last) - 2; i >= 0; i-- {
		if last[i] != '\n' {
			continue
		}
		if lines--; lines == 0 {
			return start + int64(i) + 1, nil
		}
	}
	return start, nil
}

// stream sends the bytes of a volume until that goes.
type stream struct {
	run    *run
	reader *reader
	to     io.Writer
	// skip is how many bytes are not sent.
	skip int64
}

// Write sends bytes. Its error is errLost when the volume goes.
func (s *stream) Write(p []byte) (int, error) {
	if s.reader.lost.Err() != nil && s.run.cfg.Bug != ReadsOn {
		return 0, errLost
	}
	skipped := min(s.skip, int64(len(p)))
	s.skip -= skipped
	n, err := s.to.Write(p[skipped:])
	return int(skipped) + n, err
}
