package archived

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/lib/patterns"
	"github.com/katbox/katbox/internal/lib/shares"
	"github.com/katbox/katbox/internal/lib/tail"
	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/asked"
	"github.com/katbox/katbox/internal/model/sealed"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// turn is how long a request for bytes waits for its turn.
	turn = 10 * time.Second
	// awayPause is how long a client should wait for a bucket that is away.
	awayPause = 10 * time.Second
	// sendLimit is given to answers that are no streams; what is between them and their reader is memory.
	sendLimit = time.Minute
)

// Client returns a client that reads a volume of the archive as if its node answered, and deletes it.
func (a *Archive) Client(v api.Volume) *api.Client {
	return api.NewClient(name, local{&handler{archive: a, volume: v}, a.cfg.Log})
}

// name is what errors call the archive.
const name = fleet.Archived

// handler answers what can be asked of one archived volume.
type handler struct {
	archive *Archive
	volume  api.Volume
}

// ServeHTTP answers a request. A stream that fails after its first byte is cut by a panic with [http.ErrAbortHandler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := api.NewAnswer(w, r, sendLimit)
	a := &call{Answer: &answer, handler: h, r: r}
	w.Header().Set(api.HeaderLevel, api.LevelHolds)
	w.Header().Set(api.HeaderNode, h.volume.Node)
	err := a.route()
	outcome := gatewaymetrics.Done
	if err != nil {
		outcome = gatewaymetrics.Failed
	}
	h.archive.cfg.Metrics.ArchiveRead(outcome)
	switch {
	case err == nil:
	case a.Code != 0:
		panic(http.ErrAbortHandler)
	default:
		e := errorOf(err)
		a.Refuse(e.Code, e.RetryAfter, e.Status)
	}
}

// call is a request and its answer.
type call struct {
	*api.Answer
	*handler
	r *http.Request
}

func (c *call) route() error {
	rest, ok := strings.CutPrefix(c.r.URL.Path, api.VolumesPath+"/"+c.volume.ID)
	if !ok {
		return api.NewError(api.NotFound, "there is nothing at %q", c.r.URL.Path)
	}
	switch method := c.r.Method; {
	case rest == "" && method == http.MethodGet:
		return c.JSON(http.StatusOK, c.volume)
	case rest == "" && method == http.MethodDelete:
		return c.remove()
	case rest == "" && method == http.MethodPatch:
		return api.NewError(api.Conflict,
			"the volume is in the archive, where it is kept until %s: it can be deleted, and neither pinned nor released",
			c.volume.ExpiresAt.UTC().Format(time.RFC3339))
	case rest == "/files" && method == http.MethodGet:
		return c.files()
	case rest == "/bytes" && (method == http.MethodGet || method == http.MethodHead):
		return c.bytes()
	}
	return api.NewError(api.MethodNotAllowed, "%s is not possible for a volume in the archive", c.r.Method)
}

// remove deletes the index. With a grace, which is what a release asks for, it is refused: no one could take it back.
func (c *call) remove() error {
	p := asked.New(c.r.URL.Query())
	grace := p.Text("grace")
	p.Text("reason")
	if wrong := p.End(); wrong != nil {
		return wrong
	}
	if grace != "" {
		return api.NewError(api.Conflict,
			"the volume is in the archive, which knows no grace: delete it now, or leave it; it goes by itself at %s",
			c.volume.ExpiresAt.UTC().Format(time.RFC3339))
	}
	if err := c.archive.forget(c.r.Context(), c.volume); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

// files answers with a page of a directory, or with one entry.
func (c *call) files() error {
	q, wrong := asked.Files(c.r.URL.Query())
	if wrong != nil {
		return wrong
	}
	path, err := paths.ParseRef(q.Path)
	if err != nil {
		return err
	}
	of, err := c.reader()
	if err != nil {
		return err
	}
	x, release, err := c.archive.open(c.r.Context(), of, c.volume)
	if err != nil {
		return err
	}
	defer release()
	if !q.Stat {
		list, err := x.list(c.r.Context(), path, q)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, list)
	}
	e, err := x.stat(c.r.Context(), path)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.FileList{Path: path.Ref(), Entries: []api.Entry{described(e)}})
}

// bytes streams a file, a part of it, or a tar.
func (c *call) bytes() error {
	q, wrong := asked.Bytes(c.r.URL.Query(), c.r.Header.Get("Range") != "")
	if wrong != nil {
		return wrong
	}
	path, err := paths.ParseRef(q.Path)
	if err != nil {
		return err
	}
	of, err := c.reader()
	if err != nil {
		return err
	}
	end, err := c.archive.turn(c.r.Context(), c.archive.streaming, of, "read from the archive")
	if err != nil {
		return err
	}
	defer end()
	x, release, err := c.archive.open(c.r.Context(), of, c.volume)
	if err != nil {
		return err
	}
	defer release()
	if q.Archive {
		return c.tar(x, path, q)
	}
	return c.file(x, path, q)
}

// reader returns the party whose share a request takes. The gateway says who asks.
func (c *call) reader() (of string, err error) {
	user, err := url.QueryUnescape(c.r.Header.Get(api.HeaderUser))
	if err != nil {
		return "", api.NewError(api.BadRequest, "the header %s: %s", api.HeaderUser, err)
	}
	of, _ = shares.Reader(user)
	return of, nil
}

// openFile is a file of the archive as a part is asked of it.
type openFile struct {
	*file
	tag string
}

// ETag names the contents.
func (f openFile) ETag() string { return f.tag }

// Tail returns where the last lines begin.
func (f openFile) Tail(ctx context.Context, lines int, atMost int64) (int64, error) {
	return tail.Offset(ctx, f.file, f.Size(), lines, atMost)
}

// file streams a file or a part of it.
func (c *call) file(x *index, path paths.Path, q api.BytesQuery) error {
	ctx := c.r.Context()
	e, err := x.content(ctx, path)
	if err != nil {
		return err
	}
	from := x.reader(ctx)
	defer from.close()
	f := openFile{from.file(e), x.tag("file", path, q)}
	part, err := asked.PartOf(ctx, f, q, c.r.Header)
	if out := (*api.Error)(nil); errors.As(err, &out) && out.Reason == api.RangeNotValid {
		c.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", f.Size()))
	}
	if err != nil {
		return err
	}
	contentType, err := asked.Sniff(f, f.Size())
	if err != nil {
		return err
	}
	header := c.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Disposition", asked.Disposition(path.Base()))
	header.Set("ETag", f.tag)
	header.Set("Accept-Ranges", "bytes")
	header.Set(api.HeaderSize, strconv.FormatInt(f.Size(), 10))
	code := part.Header(header, f.Size())
	if c.r.Method == http.MethodHead {
		c.WriteHeader(code)
		return nil
	}
	buffer := make([]byte, min(block, max(part.Length, 1)))
	for offset, end := part.Offset, part.Offset+part.Length; offset < end; {
		n, err := f.ReadAt(buffer[:min(int64(len(buffer)), end-offset)], offset)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case n == 0:
			return fmt.Errorf("%w: it ends at byte %d of %d", errPiece, offset, f.Size())
		}
		if c.Code == 0 {
			c.WriteHeader(code) // not before the first bytes are there: until then an error has a code of its own
		}
		if _, err := c.Write(buffer[:n]); err != nil {
			return err
		}
		offset += int64(n)
	}
	if c.Code == 0 {
		c.WriteHeader(code)
	}
	return nil
}

// tar streams a tar of a directory or file.
func (c *call) tar(x *index, path paths.Path, q api.BytesQuery) error {
	tag := x.tag("tar", path, q)
	begun, err := asked.BeginTar(c.r.Header, c.Header(), tag, cmp.Or(path.Base(), c.volume.Pod, c.volume.ID))
	if err != nil {
		return err
	}
	ctx := c.r.Context()
	if c.r.Method == http.MethodHead {
		if _, err := x.stat(ctx, path); err != nil {
			return err
		}
		c.WriteHeader(begun.Code)
		return nil
	}
	out := &tarOutput{call: c, code: begun.Code, buffer: make([]byte, 0, block)}
	sealing := sealed.NewWriter(out, begun.Word)
	notes, err := x.tar(ctx, sealing, tarOptions{path: path, exclude: q.Exclude, maxBytes: q.MaxBytes, skip: begun.From})
	switch {
	case err != nil:
		return err
	case begun.Word != "":
		err = sealing.Seal(notes)
	case notes.Fault != "":
		return errors.New(notes.Fault)
	}
	return errors.Join(err, out.flush())
}

// tarOutput collects what is sent. The header goes before the first bytes, so an error before them gets its own code.
type tarOutput struct {
	*call
	code   int
	buffer []byte
}

// Write takes the next bytes.
func (o *tarOutput) Write(p []byte) (int, error) {
	if len(o.buffer)+len(p) > cap(o.buffer) {
		if err := o.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) >= cap(o.buffer) {
		return o.call.Write(p)
	}
	o.buffer = append(o.buffer, p...)
	return len(p), nil
}

func (o *tarOutput) flush() error {
	if o.Code == 0 {
		o.WriteHeader(o.code)
	}
	_, err := o.call.Write(o.buffer)
	o.buffer = o.buffer[:0]
	return err
}

// tag names what a request reads: the volume by its pieces, and which part.
func (x *index) tag(what string, path paths.Path, q api.BytesQuery) string {
	sum := sha256.New()
	for _, p := range x.pieces {
		sum.Write(p.Sum[:])
	}
	fmt.Fprintf(sum, "%s %q %q", what, x.place.ID, path.String())
	if q.Archive {
		fmt.Fprintf(sum, " %q %d", q.Exclude, q.MaxBytes)
	}
	return fmt.Sprintf("\"archive1-%x\"", sum.Sum(nil))
}

// errorOf returns the answer to a request that failed.
func errorOf(err error) *api.Error {
	if e := (*api.Error)(nil); errors.As(err, &e) {
		return e
	}
	why := volume.OneLine(err)
	if e := (*pathError)(nil); errors.As(err, &e) {
		return asked.Bad(e.cause, "path", "%s", why)
	}
	later := func(format string, values ...any) *api.Error {
		e := api.NewError(api.ServiceUnavailable, format, values...)
		e.RetryAfter = awayPause
		return e
	}
	switch {
	case errors.Is(err, paths.ErrBad):
		return asked.Bad(api.BadPath, "path", "%s; take it from the ref of an entry", why)
	case errors.Is(err, patterns.ErrBad):
		return asked.Bad(api.BadParameter, "exclude", "%s", why)
	case errors.Is(err, errTooLarge):
		return asked.Bad(api.BadParameter, "maxBytes", "%s; leave something out with exclude, or read a directory further down", why)
	case errors.Is(err, errBadSkip):
		return asked.Outside("%s", why)
	case errors.Is(err, volume.ErrGone):
		return api.NewError(api.Expired, "%s", why)
	case errors.Is(err, fs.ErrNotExist):
		return api.NewError(api.NotFound, "%s", why)
	case errors.Is(err, errPiece), errors.Is(err, form.ErrForm), errors.Is(err, form.ErrTooLarge), errors.Is(err, form.ErrVersion):
		return api.NewError(api.InternalError, "the copy in the archive cannot be read: %s", why)
	case errors.Is(err, bucket.ErrNotFound):
		return api.NewError(api.InternalError, "the copy in the archive is not complete: %s", why)
	case errors.Is(err, bucket.ErrAway), errors.Is(err, errNoCluster):
		return later("%s; try again in a moment", why)
	case errors.Is(err, context.DeadlineExceeded):
		return api.NewError(api.Timeout, "the archive did not answer in time: %s; try again", why)
	}
	return api.NewError(api.InternalError, "%s; the log of the gateway may say more", why)
}
