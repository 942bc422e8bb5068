package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/history"
)

const (
	// streamLimit is how long a stream may take that is read as fast as it comes.
	streamLimit = 2 * time.Minute
	// mostPart is how much of a sparse file is read at a time: it is long.
	mostPart = 64 << 10
	// mostTailed is how large a file may be for its last lines to be read: they are
	// counted in memory.
	mostTailed = 1 << 20
	// pieceSize is how much is compared at a time, in bytes.
	pieceSize = 32 << 10
)

// readFile reads a file, or a part of it, and compares it. That must not change
// when the file was last accessed.
func (p *person) readFile(ctx context.Context, s *subject, w content.Written) error {
	before, errBefore := content.Accessed(s.volume.Data, w.Path)
	q, from, n := p.part(w)
	if err := p.compareBytes(ctx, s, w, q, from, n); err != nil {
		return err
	}
	after, errAfter := content.Accessed(s.volume.Data, w.Path)
	// The checker itself reads the markers.
	if errBefore != nil || errAfter != nil || w.Path == content.MarkerName || before.Equal(after) {
		return nil
	}
	p.wrong(history.ReadsNoTrace, s, "before %q was read its access time was %s, and then %s", w.Path, before, after)
	return errOver
}

// part decides how a file is read, and says from where on and how many bytes have
// to come.
func (p *person) part(w content.Written) (q api.BytesQuery, from, n int64) {
	q.Path = refOf(w.Path)
	most := w.Size
	if w.Sparse {
		most = mostPart
	}
	way := p.random.IntN(6)
	switch {
	case w.Size == 0, way == 0 && !w.Sparse:
		return q, 0, w.Size
	case way == 1 && w.Size <= mostTailed:
		q.TailLines = 1 + p.random.IntN(20)
		from = lastLines(w, q.TailLines)
		return q, from, w.Size - from
	case way == 2:
		q.TailBytes = 1 + p.random.Int64N(2*most)
		from = max(0, w.Size-q.TailBytes)
		return q, from, w.Size - from
	case way == 3 && !w.Sparse && w.Size > 1:
		q.From = 1 + p.random.Int64N(w.Size-1)
		return q, q.From, w.Size - q.From
	case way == 4:
		from = w.Size - 1 - p.random.Int64N(most)
		q.Offset = from - w.Size
	default:
		if from = p.random.Int64N(w.Size); w.Sparse && p.random.IntN(2) == 0 {
			from = w.Size/2 - p.random.Int64N(most) // the island is there
		}
		q.Offset = from
	}
	q.Limit = 1 + p.random.Int64N(most)
	return q, from, min(q.Limit, w.Size-from)
}

// lastLines is where the last lines of a file begin. A line break at the end ends
// the last line.
func lastLines(w content.Written, lines int) int64 {
	all, _ := io.ReadAll(w.Bytes(0, w.Size)) // nothing of it can fail
	rest := bytes.TrimSuffix(all, []byte("\n"))
	for range lines {
		i := bytes.LastIndexByte(rest, '\n')
		if i < 0 {
			return 0
		}
		rest = rest[:i]
	}
	return int64(len(rest)) + 1
}

// compareBytes reads what a query asks for and compares it with so many bytes of
// the file.
func (p *person) compareBytes(ctx context.Context, s *subject, w content.Written, q api.BytesQuery, from, n int64) error {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, streamLimit)
	defer cancel()
	stream, err := p.client.Bytes(limited, s.volume.ID, q)
	if err != nil {
		return p.judge(ctx, s, began, fmt.Sprintf("%q, %+v", w.Path, q), err)
	}
	defer stream.Close()
	if stream.Size != w.Size || stream.Offset != from {
		p.wrong(history.ReadsTrue, s, "%q has %d bytes and %d were said to be the size; of %+v the offset should be %d and is %d",
			w.Path, w.Size, stream.Size, q, from, stream.Offset)
		return errOver
	}
	differs, err := compare(p.counts.through(stream), w.Bytes(from, n), n)
	switch {
	case err != nil:
		return p.judge(ctx, s, began, fmt.Sprintf("%q, %+v", w.Path, q), err)
	case differs != "":
		p.wrong(history.ReadsTrue, s, "of %q, %d bytes, were asked for %+v: %s", w.Path, w.Size, q, differs)
		return errOver
	}
	p.counts.files.Add(1)
	return nil
}

// compare reads a stream to its end and says in what it differs from the n bytes
// that it should have. The error says that it did not come to its end.
func compare(got, wanted io.Reader, n int64) (differs string, err error) {
	differs, err = comparePart(got, wanted, n)
	if differs != "" || err != nil {
		return differs, err
	}
	more, err := io.CopyN(io.Discard, got, 1)
	switch {
	case more > 0:
		return fmt.Sprintf("it has more than the %d bytes that it should have", n), nil
	case !errors.Is(err, io.EOF):
		return "", fmt.Errorf("%w: %w", errIncomplete, err)
	}
	return "", nil
}

// comparePart compares the next n bytes of a stream.
func comparePart(got, wanted io.Reader, n int64) (differs string, err error) {
	a, b := make([]byte, min(n, pieceSize)), make([]byte, min(n, pieceSize))
	for done := int64(0); done < n; {
		size := int(min(n-done, pieceSize))
		read, err := io.ReadFull(got, a[:size])
		if _, errWanted := io.ReadFull(wanted, b[:size]); errWanted != nil {
			return "", fmt.Errorf("make up what was written: %w", errWanted)
		}
		if !bytes.Equal(a[:read], b[:read]) {
			return fmt.Sprintf("its bytes are not what was written, within %d of byte %d", pieceSize, done), nil
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, api.ErrCut):
			return fmt.Sprintf("it ended well after %d of %d bytes", done+int64(read), n), nil
		case err != nil:
			return "", fmt.Errorf("%w: %w", errIncomplete, err)
		}
		done += int64(size)
	}
	return "", nil
}
