package tarball

import (
	"context"
	"io"

	"github.com/katbox/katbox/internal/node/files"
)

// bufferSize is how much is read and written at once, in bytes: a batch of [files.Pace].
const bufferSize = 256 << 10

// output is where the archive goes. It leaves out the beginning, and collects small pieces.
type output struct {
	ctx  context.Context // that of Write
	w    io.Writer
	pace files.Pace
	buf  []byte
	// position is how many bytes the archive has so far. Those before skip are not written.
	position, skip int64
}

func newOutput(ctx context.Context, w io.Writer, skip int64, pace files.Pace) *output {
	return &output{ctx: ctx, w: w, pace: pace, buf: make([]byte, 0, bufferSize), skip: skip}
}

// write appends b to the archive.
func (o *output) write(b []byte) error {
	b = b[o.advance(int64(len(b))):]
	for len(b) > 0 {
		free, err := o.free()
		if err != nil {
			return err
		}
		n := copy(free, b)
		o.took(n)
		b = b[n:]
	}
	return nil
}

// zeros appends n zeros to the archive.
func (o *output) zeros(n int64) error {
	n -= o.advance(n)
	for n > 0 {
		free, err := o.free()
		if err != nil {
			return err
		}
		free = free[:min(int64(len(free)), n)]
		clear(free)
		o.took(len(free))
		n -= int64(len(free))
	}
	return nil
}

// advance leaves out the part of the next n bytes that comes before skip, and returns its length.
func (o *output) advance(n int64) int64 {
	n = max(0, min(n, o.skip-o.position))
	o.position += n
	return n
}

// free returns room for the next bytes of the archive. The caller fills its beginning and calls took.
func (o *output) free() ([]byte, error) {
	if len(o.buf) == cap(o.buf) {
		if err := o.flush(); err != nil {
			return nil, err
		}
		if o.pace != nil {
			if err := o.pace(o.ctx); err != nil {
				return nil, err
			}
		}
	}
	return o.buf[len(o.buf):cap(o.buf)], nil
}

// took appends the n bytes that the caller has put where free said.
func (o *output) took(n int) {
	o.buf = o.buf[:len(o.buf)+n]
	o.position += int64(n)
}

// flush writes what was collected.
func (o *output) flush() error {
	if err := o.ctx.Err(); err != nil {
		return err
	}
	_, err := o.w.Write(o.buf)
	o.buf = o.buf[:0]
	return err
}
