package archived

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Encoder makes an index, in memory. It refuses what a [Decoder] would.
type Encoder struct {
	entries *stream
	order   order
}

// NewEncoder returns an Encoder without entries.
func NewEncoder() (*Encoder, error) {
	s, err := newStream(MaxIndexText)
	return &Encoder{entries: s, order: order{most: MaxPieces*PieceSize - Trailer}}, err
}

// Entry adds an entry.
func (e *Encoder) Entry(entry Entry) error {
	if err := e.order.next(&entry); err != nil {
		return err
	}
	return e.entries.lines.Encode(line{Entry: entry.line()})
}

// Size is about how many bytes the index takes in memory so far.
func (e *Encoder) Size() int { return e.entries.object.Cap() }

// Finish returns the object. It sets how many pieces and entries the head has. The Encoder is of no use afterwards.
func (e *Encoder) Finish(h Head, pieces []Piece) ([]byte, error) {
	h.Pieces, h.Entries = len(pieces), e.order.count
	if err := errors.Join(h.check(), e.order.whole(&h)); err != nil {
		return nil, err
	}
	// The pieces are known last, and come first: a reader needs them before it looks for an entry. One stream of zstd may
	// follow another.
	begin, err := newStream(MaxIndexText - e.entries.long)
	if err != nil {
		return nil, err
	}
	err = begin.lines.Encode(line{Head: h.line()})
	for i := 0; err == nil && i < len(pieces); i++ {
		if err = pieces[i].check(i); err == nil {
			err = begin.lines.Encode(line{Piece: &pieces[i]})
		}
	}
	err = errors.Join(err, begin.zstd.Close(), e.entries.zstd.Close())
	if err == nil && begin.object.Len()+e.entries.object.Len() > MaxIndex {
		err = fmt.Errorf("%w: the index has more than %d bytes, compressed", ErrTooLarge, MaxIndex)
	}
	if err != nil {
		return nil, err
	}
	return append(begin.object.Bytes(), e.entries.object.Bytes()...), nil
}

// stream is a part of an index.
type stream struct {
	object bytes.Buffer
	zstd   *zstd.Encoder
	lines  *json.Encoder
	// long is how long its lines are together, and most how long they may be.
	long, most int64
}

func newStream(most int64) (*stream, error) {
	s := &stream{most: most}
	var err error
	s.zstd, err = zstd.NewWriter(&s.object, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(window))
	s.lines = json.NewEncoder(s)
	s.lines.SetEscapeHTML(false)
	return s, err
}

// Write takes a line.
func (s *stream) Write(p []byte) (int, error) {
	if s.long += int64(len(p)); s.long > s.most || len(p) > maxLine {
		return 0, fmt.Errorf("%w: the index has more than %d bytes", ErrTooLarge, MaxIndexText)
	}
	n, err := s.zstd.Write(p)
	if err == nil && s.object.Len() > MaxIndex {
		err = fmt.Errorf("%w: the index has more than %d bytes, compressed", ErrTooLarge, MaxIndex)
	}
	return n, err
}

// check checks a piece by itself.
func (p *Piece) check(number int) error {
	if p.Length <= 0 || p.Length > MaxPiece {
		return fmt.Errorf("%w: piece %d has %d bytes", ErrForm, number, p.Length)
	}
	return nil
}

// whole checks that the entries are all that the head says.
func (o *order) whole(h *Head) error {
	switch {
	case h.Size != o.end+Trailer:
		return fmt.Errorf("%w: the tar has %d bytes, and its entries end at %d", ErrForm, h.Size, o.end)
	case h.Entries != o.count:
		return fmt.Errorf("%w: it has %d entries, not %d", ErrForm, o.count, h.Entries)
	}
	return nil
}
