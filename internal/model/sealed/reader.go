package sealed

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// ErrNoSeal: the body ended without its seal, so it was cut. What came until then is good.
var ErrNoSeal = errors.New("its end does not say that it is complete")

// FaultError is the end of a body that is not what it should be: a file changed while it was read, or other bytes came
// than were sent. Nothing goes on behind such a body: its seal says that something in it is bad, and not what.
type FaultError struct {
	// Fault is that of the [Notes], or says which bytes came.
	Fault string
}

// Error says what is wrong.
func (e *FaultError) Error() string { return "the archive is not complete: " + e.Fault }

// bufferSize is how much of a body is read at once, in bytes.
const bufferSize = 64 << 10

// Reader reads a sealed body without its seal. Of the last [Size] bytes that came it returns none before
// there are more: they may be the seal.
type Reader struct {
	from *bufio.Reader
	want seal
	// notes are those of the seal, once it came.
	notes Notes
	// ended is what Read returns from now on.
	ended error
}

// NewReader returns a Reader of what answers to a request with that word.
func NewReader(r io.Reader, word string) *Reader {
	return &Reader{from: bufio.NewReaderSize(r, bufferSize), want: seal{Word: word}}
}

// Read reads the next bytes of the body. Its end is io.EOF if the whole body came and nothing is wrong with
// it, a [*FaultError] if something is, and else an error that wraps [ErrNoSeal] or that of what is read.
func (r *Reader) Read(p []byte) (int, error) {
	if r.ended != nil || len(p) == 0 {
		return 0, r.ended
	}
	if _, err := r.from.Peek(Size + 1); err != nil {
		r.ended = r.end(err)
		return 0, r.ended
	}
	n, err := r.from.Read(p[:min(len(p), r.from.Buffered()-Size)])
	r.want.Bytes += int64(n)
	r.want.Sum = crc32.Update(r.want.Sum, castagnoli, p[:n])
	return n, err
}

// Notes returns what the seal says, once it was read.
func (r *Reader) Notes() Notes { return r.notes }

// end looks at what came last, before err.
func (r *Reader) end(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	last, _ := r.from.Peek(Size) // as many as there are
	var is seal
	if len(last) < Size || json.Unmarshal(bytes.TrimRight(last, "\x00"), &is) != nil || is.Word != r.want.Word {
		return ErrNoSeal
	}
	r.notes = is.bounded()
	if is.Bytes != r.want.Bytes || is.Sum != r.want.Sum {
		r.notes.Fault = fmt.Sprintf("%d bytes with the checksum %08x came, and %d with %08x were sent", r.want.Bytes, r.want.Sum,
			is.Bytes, is.Sum)
	}
	if r.notes.Fault != "" {
		return &FaultError{r.notes.Fault}
	}
	return io.EOF
}
