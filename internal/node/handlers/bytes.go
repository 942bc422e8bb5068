package handlers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/asked"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/node/files"
)

// batch is how many bytes are read from a file and sent at once.
const batch = 256 << 10

// dropEvery is after how many bytes the page cache of what was read is given back.
const dropEvery = 8 << 20

// bytes streams a file, a part of it, or an archive.
func (a *answer) bytes(ctx context.Context) error {
	q, wrong := asked.Bytes(a.r.URL.Query(), a.r.Header.Get("Range") != "")
	if q.Archive {
		a.verb = "archive"
	}
	if wrong != nil {
		return wrong
	}
	path, err := paths.ParseRef(q.Path)
	if err != nil {
		return err
	}
	a.ref = path.Ref()
	of, who, err := a.whose(ctx)
	if err != nil {
		return err
	}
	release, err := a.h.streams.Take(of)
	all, own := a.h.streams.Taken(of)
	if err != nil {
		a.h.Metrics.StreamRefused()
		return tooMany("%d streams are running on this node, %d of them from %s, which is the most at present; try again when one has ended",
			all, own, who)
	}
	defer release()
	a.h.Metrics.StreamBegan()
	defer a.h.Metrics.StreamEnded()
	to := newSender(a, own)
	defer to.end()
	to.renew() // in HTTP/2 the deadline also ends a stream that has not begun
	reading, during, end, err := a.read(ctx, to.cut)
	if err != nil {
		return err
	}
	defer end()
	if q.Archive {
		err = a.archive(during, reading, path, q, to)
	} else {
		err = a.file(during, reading, path, q, to)
	}
	return cause(during, err)
}

// file streams a file or a part of it.
func (a *answer) file(ctx context.Context, reading *files.Reading, path paths.Path, q api.BytesQuery, to *sender) error {
	begin := func() (f *files.File, p asked.Part, contentType string, err error) {
		defer a.h.LowPriority()()
		if f, err = reading.Tree.Open(path); err != nil {
			return nil, p, "", err
		}
		p, err = asked.PartOf(ctx, f, q, a.r.Header)
		if err == nil {
			contentType, err = asked.Sniff(f, f.Size())
		}
		if err != nil {
			f.Close()
		}
		if e := (*api.Error)(nil); errors.As(err, &e) && e.Reason == api.RangeNotValid {
			a.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", f.Size()))
		}
		return f, p, contentType, err
	}
	f, p, contentType, err := begin()
	if err != nil {
		return err
	}
	defer f.Close()
	header := a.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Disposition", asked.Disposition(path.Base()))
	header.Set("ETag", f.ETag())
	header.Set("Accept-Ranges", "bytes")
	header.Set(api.HeaderSize, strconv.FormatInt(f.Size(), 10))
	code := p.Header(header, f.Size())
	if err := context.Cause(ctx); err != nil {
		return err
	}
	to.renew()
	a.WriteHeader(code)
	if a.r.Method == http.MethodHead {
		return nil
	}
	return a.copy(ctx, f, p, reading.Pace, to)
}

// copy sends a part of a file.
func (a *answer) copy(ctx context.Context, f *files.File, p asked.Part, pace files.Pace, to io.Writer) error {
	buf := a.h.batches.Get().(*[batch]byte)
	defer a.h.batches.Put(buf)
	dropped, end := p.Offset, p.Offset+p.Length
	defer func() { f.DropBehind(dropped, end) }()
	for offset := p.Offset; offset < end; {
		if err := pace.Wait(ctx); err != nil {
			return err
		}
		n, err := a.readAt(f, buf[:min(batch, end-offset)], offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return err
		}
		offset += int64(n)
		if offset-dropped >= dropEvery {
			f.DropBehind(dropped, offset)
			dropped = offset
		}
	}
	return nil
}

// readAt fills buf. It has the low priority only while it reads: while it waits for the client, it
// does not keep a thread.
func (a *answer) readAt(f *files.File, buf []byte, offset int64) (int, error) {
	defer a.h.LowPriority()()
	return f.ReadAt(buf, offset)
}
