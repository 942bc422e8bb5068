package reader

import (
	"io"
	"sync/atomic"
)

// Counts is what was read.
type Counts struct {
	// Lists counts whole lists of volumes, of as many pages as they have.
	Lists int
	// Volumes counts those that were read.
	Volumes int
	// Files counts files, parts and ends of files.
	Files int
	// Bytes are all that came in streams.
	Bytes int64
	// Tars counts whole tars.
	Tars int
	// Ended counts what ended because its volume went, or the driver was killed.
	Ended int
	// Refused counts what was asked for and is not to be read, and was refused.
	Refused int
}

type counts struct {
	lists, volumes, files, bytes, tars, ended, refused atomic.Int64
}

// Counts says what was read so far.
func (r *Reader) Counts() Counts {
	c := &r.counts
	return Counts{
		Lists: int(c.lists.Load()), Volumes: int(c.volumes.Load()), Files: int(c.files.Load()), Bytes: c.bytes.Load(),
		Tars: int(c.tars.Load()), Ended: int(c.ended.Load()), Refused: int(c.refused.Load()),
	}
}

// through counts the bytes of a stream.
func (c *counts) through(stream io.Reader) io.Reader { return &counted{stream, &c.bytes} }

type counted struct {
	io.Reader
	bytes *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}
