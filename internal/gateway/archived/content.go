package archived

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/katbox/katbox/internal/gateway/bucket"
	form "github.com/katbox/katbox/internal/model/archived"
)

// content reads the tar of a volume, piece by piece. It is for one goroutine.
type content struct {
	*index
	ctx context.Context // that of the request, which makes a content for itself alone
	// offset is where the next byte is in the tar; from is the piece it is in, nil where none is open.
	offset  int64
	from    io.ReadCloser
	release func()
	// end is where the piece ends in the tar.
	end int64
	// read is how many bytes the pieces have that were opened, and away why the bucket could not be asked for one.
	read int64
	away error
}

func (x *index) reader(ctx context.Context) *content { return &content{index: x, ctx: ctx} }

// seek goes to an offset. Further down in the open piece it leaves out what is between: to begin the piece again for each of many
// small files would take a thousand times as long.
func (c *content) seek(offset int64) {
	if c.from != nil && offset > c.offset && offset < c.end {
		left, _ := io.CopyN(io.Discard, c.from, offset-c.offset) // its error comes again
		c.offset += left
	}
	if offset != c.offset {
		c.close()
		c.offset = offset
	}
}

// Read reads the next bytes.
func (c *content) Read(p []byte) (int, error) {
	if c.from == nil {
		if c.offset >= c.head.Size {
			return 0, io.EOF
		}
		if err := c.open(); err != nil {
			return 0, err
		}
	}
	n, err := c.from.Read(p[:min(int64(len(p)), c.end-c.offset)])
	c.offset += int64(n)
	switch {
	case c.offset == c.end:
		c.close()
		return n, nil
	case errors.Is(err, io.EOF):
		return n, fmt.Errorf("%w: it has fewer bytes", errPiece)
	case err != nil:
		return n, fmt.Errorf("%w: %w", errPiece, err)
	}
	return n, nil
}

// open opens the piece with the next byte.
func (c *content) open() error {
	if err := context.Cause(c.ctx); err != nil {
		return err
	}
	number := int(c.offset / form.PieceSize)
	piece := c.pieces[number]
	key := c.place.PieceKey(number, piece.Sum)
	object, release, err := c.archive.pieces.get(c.ctx, c.of, key, piece.Length, func(ctx context.Context) ([]byte, error) {
		object, err := readAll(ctx, c.archive.cfg.Bucket, key, piece.Length)
		if err == nil && form.SumOf(object) != piece.Sum {
			err = fmt.Errorf("%w: its checksum is another one", errPiece)
		}
		return object, err
	})
	if errors.Is(err, bucket.ErrAway) {
		c.away = err
	}
	if err != nil {
		return fmt.Errorf("read piece %d of the archive: %w", number, err)
	}
	c.read += piece.Length
	c.release = release
	begin := int64(number) * form.PieceSize
	c.end = begin + form.PieceLength(c.head.Size, number)
	c.from, err = form.Open(bytes.NewReader(object))
	if err == nil {
		_, err = io.CopyN(io.Discard, c.from, c.offset-begin)
	}
	if err != nil {
		c.close()
		return fmt.Errorf("%w: %w", errPiece, err)
	}
	return nil
}

// close closes the piece.
func (c *content) close() {
	if c.from != nil {
		c.from.Close()
		c.from = nil
	}
	if c.release != nil {
		c.release()
		c.release = nil
	}
}

// file reads a file of the volume. It is for one goroutine.
type file struct {
	*content
	entry form.Entry
	// begins are where the extents begin in the tar.
	begins []int64
}

// file returns a reader of an entry that has a content.
func (c *content) file(e form.Entry) *file {
	if !e.Sparse {
		e.Extents = nil
		if e.Size > 0 {
			e.Extents = []form.Extent{{Length: e.Size}}
		}
	}
	f := &file{content: c, entry: e}
	begin := e.Content
	for _, x := range e.Extents {
		f.begins = append(f.begins, begin)
		begin += x.Length
	}
	return f
}

// Size is that of the file.
func (f *file) Size() int64 { return f.entry.Size }

// ReadAt is io.ReaderAt. Holes are zeros.
func (f *file) ReadAt(p []byte, offset int64) (n int, err error) {
	for n < len(p) && err == nil {
		if offset >= f.entry.Size {
			return n, io.EOF
		}
		var some int
		some, err = f.some(p[n:min(int64(len(p)), int64(n)+f.entry.Size-offset)], offset)
		n, offset = n+some, offset+int64(some)
	}
	return n, err
}

// some reads from one extent, or from one hole.
func (f *file) some(p []byte, offset int64) (int, error) {
	extents := f.entry.Extents
	// The first one that ends behind the offset.
	i := sort.Search(len(extents), func(i int) bool { return extents[i].Offset+extents[i].Length > offset })
	if i == len(extents) || offset < extents[i].Offset {
		end := f.entry.Size
		if i < len(extents) {
			end = extents[i].Offset
		}
		p = p[:min(int64(len(p)), end-offset)]
		clear(p)
		return len(p), nil
	}
	x := extents[i]
	f.seek(f.begins[i] + offset - x.Offset)
	return f.Read(p[:min(int64(len(p)), x.Offset+x.Length-offset)])
}
