package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/sealed"
)

// source reads a file or an archive to its end, also if the daemon or the gateway restarts meanwhile,
// or cuts a stream that was not read for minutes. Content that changed in between is an error.
type source struct {
	ctx    context.Context // that of the verb, which makes one source and reads it
	volume Volume
	query  api.BytesQuery
	stream *api.Stream
	// next is the place of the next byte in the file or archive.
	next int64
	// stalled is since when no byte came; zero after a byte.
	stalled time.Time
	// answered: since then there was an answer, which was cut at the same byte.
	answered bool
	// failed is the error that ended it before its end.
	failed error
}

// isBad reports whether something is wrong in an archive that has come to its end: what is there of it is no beginning
// to go on behind.
func isBad(err error) bool { return errors.As(err, new(*sealed.FaultError)) }

// isBadFor reports whether something is wrong in an archive that could not be unpacked to its end. It is not if the
// stream was cut, or if the destination is what failed.
func (r *source) isBadFor(err error) bool {
	return isBad(err) || r.failed == nil && r.ctx.Err() == nil && !errors.As(err, new(syscall.Errno))
}

// open begins to read from a volume.
func open(ctx context.Context, v Volume, q api.BytesQuery) (*source, error) {
	stream, err := v.Reader.Bytes(ctx, v.ID, q)
	if err != nil {
		return nil, v.Reader.Explain(ctx, v.ID, err)
	}
	return &source{ctx: ctx, volume: v, query: q, stream: stream, next: stream.Offset}, nil
}

// Read reads the next bytes.
func (r *source) Read(p []byte) (int, error) {
	for {
		n, err := r.stream.Read(p)
		r.next += int64(n)
		if n > 0 {
			r.stalled = time.Time{}
		}
		if !errors.Is(err, api.ErrCut) || r.ctx.Err() != nil {
			if !errors.Is(err, io.EOF) {
				r.failed = err
			}
			return n, err
		}
		if n > 0 {
			return n, nil // the stream says again that it was cut
		}
		if r.failed = r.again(err); r.failed != nil {
			return 0, r.failed
		}
	}
}

// again asks for the rest of a stream that was cut.
func (r *source) again(cut error) error {
	r.stream.Close()
	switch {
	case r.stalled.IsZero():
		r.stalled, r.answered = time.Now(), false
	case r.answered && time.Since(r.stalled) > patience:
		return cut
	}
	q := r.query
	// The end of a file goes on from a byte of the file.
	q.From, q.ETag, q.TailLines, q.TailBytes = r.next, r.stream.ETag, 0, 0
	_ = retry.Pause(r.ctx, firstWait)
	stream, err := insist(r.ctx, r.stalled.Add(patience), func() (*api.Stream, error) {
		return r.volume.Reader.Bytes(r.ctx, r.volume.ID, q)
	})
	switch {
	case err == nil && stream.Offset != r.next:
		stream.Close()
		return errors.New("the contents changed while they were read")
	case err == nil:
		r.stream, r.answered = stream, true
		return nil
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case passes(err):
		return fmt.Errorf("%w; %w", cut, r.volume.Reader.Explain(r.ctx, r.volume.ID, err))
	}
	return r.volume.Reader.Explain(r.ctx, r.volume.ID, err)
}

// Close ends the stream.
func (r *source) Close() error { return r.stream.Close() }
