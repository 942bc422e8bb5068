package archived

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Decoder reads an index, entry by entry, in bounded memory.
type Decoder struct {
	zstd   *zstd.Decoder
	lines  *bufio.Scanner
	head   Head
	pieces []Piece
	order  order
	// err is what Next returns from now on.
	err error
}

// NewDecoder reads the head of an index, and its pieces.
func NewDecoder(object io.Reader) (*Decoder, error) {
	compressed := &atMost{r: object, left: MaxIndex}
	decoder, err := zstd.NewReader(compressed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(MaxIndexText), zstd.WithDecoderMaxWindow(window), zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		return nil, err
	}
	d := &Decoder{zstd: decoder, lines: bufio.NewScanner(&atMost{r: decoder, left: MaxIndexText})}
	d.lines.Buffer(make([]byte, 0, 64<<10), maxLine+1)
	if err := d.begin(); err != nil {
		decoder.Close()
		return nil, err
	}
	return d, nil
}

func (d *Decoder) begin() error {
	l, err := d.line()
	switch {
	case err != nil:
		return err
	case l.Head == nil || l.Head.Version < 1:
		return fmt.Errorf("%w: the first line is none of an index", ErrForm)
	case l.Head.Version > version:
		return fmt.Errorf("%w: version %d", ErrVersion, l.Head.Version)
	}
	d.head = l.Head.head()
	if err := d.head.check(); err != nil {
		return err
	}
	d.order.most = d.head.Size - Trailer // who looks for one entry may never see whether the last one ends there
	for i := range d.head.Pieces {
		l, err := d.line()
		if err != nil {
			return err
		}
		if l.Piece == nil {
			return fmt.Errorf("%w: a piece is missing", ErrForm)
		}
		if err := l.Piece.check(i); err != nil {
			return err
		}
		d.pieces = append(d.pieces, *l.Piece)
	}
	return nil
}

// Head returns the first line.
func (d *Decoder) Head() Head { return d.head }

// Pieces returns the pieces. The caller does not change them.
func (d *Decoder) Pieces() []Piece { return d.pieces }

// Next returns the next entry, and io.EOF after the last one. Any other error says that the index is not to be believed.
func (d *Decoder) Next() (Entry, error) {
	if d.err != nil {
		return Entry{}, d.err
	}
	e, err := d.next()
	d.err = err
	return e, err
}

func (d *Decoder) next() (Entry, error) {
	if d.order.count == d.head.Entries {
		if d.lines.Scan() {
			return Entry{}, fmt.Errorf("%w: it goes on behind its end", ErrForm)
		}
		if err := errors.Join(d.scanned(), d.order.whole(&d.head)); err != nil {
			return Entry{}, err
		}
		return Entry{}, io.EOF
	}
	l, err := d.line()
	if err != nil {
		return Entry{}, err
	}
	if l.Entry == nil {
		return Entry{}, fmt.Errorf("%w: an entry is missing", ErrForm)
	}
	e := l.Entry.entry(d.order.end)
	return e, d.order.next(&e)
}

// Close frees what the Decoder holds.
func (d *Decoder) Close() { d.zstd.Close() }

// line reads a line.
func (d *Decoder) line() (l line, err error) {
	if !d.lines.Scan() {
		if err := d.scanned(); err != nil {
			return line{}, err
		}
		return line{}, fmt.Errorf("%w: the index is cut", ErrForm)
	}
	if err := json.Unmarshal(d.lines.Bytes(), &l); err != nil {
		return line{}, fmt.Errorf("%w: a line of the index: %w", ErrForm, err)
	}
	return l, nil
}

// scanned is why there is no further line; nil at the end.
func (d *Decoder) scanned() error {
	switch err := d.lines.Err(); {
	case err == nil, errors.Is(err, ErrTooLarge):
		return err
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%w: a line of the index has more than %d bytes", ErrTooLarge, maxLine)
	default:
		return fmt.Errorf("read the index: %w", err)
	}
}

// atMost is a reader that fails beyond its bound.
type atMost struct {
	r    io.Reader
	left int64
}

// Read reads on, and looks at one byte beyond the bound.
func (a *atMost) Read(p []byte) (int, error) {
	if int64(len(p)) > a.left+1 {
		p = p[:a.left+1]
	}
	n, err := a.r.Read(p)
	if a.left -= int64(n); a.left < 0 {
		return 0, fmt.Errorf("%w: the index has too many bytes", ErrTooLarge)
	}
	return n, err
}
