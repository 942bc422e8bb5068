package archived

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/lib/shares"
	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// mostDecoding bounds how many indexes are read at once, and mostStreaming how many requests for bytes run, each of which may read
	// one. Each takes some 4 MiB beside the index and the pieces themselves. mostOfReader bounds those of one reader in either, who may
	// take their time, and mostWaiting those that wait for their turn.
	mostDecoding  = 8
	mostStreaming = 12
	mostOfReader  = 3
	mostWaiting   = 16
)

// index is the index of one volume, as long as a request needs it.
type index struct {
	archive *Archive
	// of is the reader whose share the request takes.
	of     string
	place  form.Place
	object []byte
	head   form.Head
	// pieces are those of the tar.
	pieces []form.Piece
}

// open reads the index of a volume for a reader. The caller calls release.
func (a *Archive) open(ctx context.Context, of string, v api.Volume) (x *index, release func(), err error) {
	cluster, shown, err := form.ParseIndexKey(v.Archived)
	if err == nil {
		err = a.ours(cluster)
	}
	if err != nil {
		return nil, nil, err
	}
	there, err := a.cfg.Bucket.Head(ctx, v.Archived)
	switch {
	case errors.Is(err, bucket.ErrNotFound):
		return nil, nil, fmt.Errorf("%w: its archive has ended, or was deleted", volume.ErrGone)
	case err != nil:
		return nil, nil, err
	case there.Size > form.MaxIndex:
		return nil, nil, fmt.Errorf("%w: the index has %d bytes", form.ErrTooLarge, there.Size)
	}
	object, release, err := a.indexes.get(ctx, of, v.Archived, there.Size, func(ctx context.Context) ([]byte, error) {
		return readAll(ctx, a.cfg.Bucket, v.Archived, there.Size)
	})
	if err != nil {
		return nil, nil, err
	}
	read, leave := false, release // the result is nil where it returns an error
	defer func() {
		if !read {
			leave()
		}
	}()
	x = &index{archive: a, of: of, object: object, place: form.Place{
		Cluster: cluster, NamespaceUID: shown.Owner.NamespaceUID,
		Place: volume.Place{Pod: volume.PodUID(shown.PodUID), ID: volume.ID(shown.ID)},
	}}
	if err := x.each(ctx, nil); err != nil {
		return nil, nil, err
	}
	read = true
	return x, release, nil
}

// turn waits until a reader may do something more. The error says that it would take too long.
func (a *Archive) turn(ctx context.Context, s *shares.Shares, of, what string) (end func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	if end, err = s.Wait(waiting, of); err == nil {
		return end, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	all, own := s.Taken(of)
	return nil, soon("%d requests %s, %d of them yours, which is the most at present; try again when one has ended", all, what, own)
}

// soon is the answer to a request for which there is no room just now.
func soon(format string, values ...any) error {
	e := api.NewError(api.TooManyRequests, format, values...)
	e.RetryAfter = time.Second
	return e
}

// errStop ends a reading of entries.
var errStop = errors.New("that is all")

// each calls fn with all entries of the tar, in its order, until it returns an error, which each returns unless it is errStop.
// Without fn it reads the head and the pieces alone.
func (x *index) each(ctx context.Context, fn func(*form.Entry) error) error {
	end, err := x.archive.turn(ctx, x.archive.decoding, x.of, "read indexes of the archive")
	if err != nil {
		return err
	}
	defer end()
	return x.entries(ctx, fn)
}

// entries is each for one of the few requests that may take their time.
func (x *index) entries(ctx context.Context, fn func(*form.Entry) error) error {
	d, err := form.NewDecoder(bytes.NewReader(x.object))
	if err != nil {
		return fmt.Errorf("the index of the archive: %w", err)
	}
	defer d.Close()
	if fn == nil {
		x.head, x.pieces = d.Head(), d.Pieces()
		return nil
	}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e, err := d.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the index of the archive: %w", err)
		}
		if err := fn(&e); err != nil {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
	}
}

// stat returns what is at a path. A hard link has the content of the file that it is one more name of.
func (x *index) stat(ctx context.Context, p paths.Path) (form.Entry, error) {
	if p.IsTop() {
		return x.head.Root, nil
	}
	way := on{path: p}
	if err := x.each(ctx, way.see); err != nil {
		return form.Entry{}, err
	}
	return way.end()
}

// content returns the file that a path leads to, with its content.
func (x *index) content(ctx context.Context, p paths.Path) (form.Entry, error) {
	e, err := x.stat(ctx, p)
	if err == nil {
		err = at(p, readable(e))
	}
	if err != nil || e.Link == "" {
		return e, err
	}
	first, found := form.Entry{}, false
	err = x.each(ctx, func(other *form.Entry) error {
		if other.Name == e.Link && other.Type == api.File && other.Link == "" {
			first, found = *other, true
			return errStop
		}
		return nil
	})
	if err == nil && (!found || first.Size != e.Size) {
		err = fmt.Errorf("the index of the archive: %w: %s is another name of a file that is not there", form.ErrForm, p.Quote())
	}
	e.Content, e.End, e.Sparse, e.Extents = first.Content, first.End, first.Sparse, first.Extents
	return e, err
}

// on looks for what a path leads to.
type on struct {
	path paths.Path
	// found is what is there, and before what is on the way to it and cannot be entered.
	found, before *form.Entry
}

// see looks at an entry.
func (o *on) see(e *form.Entry) error {
	name := o.path.String()
	switch {
	case e.Name == name:
		o.found = e
		return errStop
	case len(e.Name) < len(name) && name[len(e.Name)] == '/' && name[:len(e.Name)] == e.Name && e.Type != api.Directory:
		o.before = e
		return errStop
	}
	return nil
}

// end returns what was found.
func (o *on) end() (form.Entry, error) {
	switch {
	case o.found != nil:
		return *o.found, nil
	case o.before != nil:
		return form.Entry{}, at(o.path, enterable(*o.before))
	}
	return form.Entry{}, at(o.path, errNoEntry)
}
