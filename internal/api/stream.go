package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// In the header of an answer that is a stream; see [Stream].
const (
	HeaderSize   = "Katbox-Size"
	HeaderOffset = "Katbox-Offset"
)

// ErrCut is wrapped by the error of a stream that ended too early.
var ErrCut = errors.New("the stream was cut")

// Stream is the bytes of a file or an archive. Read returns io.EOF only after the last byte of what
// was asked for.
type Stream struct {
	// Size is the size of the whole file in bytes; -1 for an archive.
	Size int64
	// Offset is the place of the stream's first byte in the file or the archive.
	Offset int64
	// Length is how many bytes the stream has; -1 while that is not known.
	Length int64
	// ETag names the contents, for a [BytesQuery] that resumes.
	ETag string
	// ContentType is "text/plain; charset=utf-8" for a file that begins with text.
	ContentType string
	// Node is the name of the node.
	Node string

	answer  *http.Response
	archive bool
	read    int64
	// ended is what Read returns from now on.
	ended error
}

// OpenStream returns the stream in an answer that is not an error. archive says that an archive was
// asked for. The caller closes the stream; that closes the answer's body.
func OpenStream(answer *http.Response, archive bool) *Stream {
	s := &Stream{
		Size: -1, Length: answer.ContentLength, answer: answer, archive: archive,
		ETag: answer.Header.Get("ETag"), ContentType: answer.Header.Get("Content-Type"), Node: answer.Header.Get(HeaderNode),
	}
	if n, err := strconv.ParseInt(answer.Header.Get(HeaderSize), 10, 64); err == nil {
		s.Size = n
	}
	if n, err := strconv.ParseInt(answer.Header.Get(HeaderOffset), 10, 64); err == nil {
		s.Offset = n
	}
	return s
}

// Read reads the next bytes.
func (s *Stream) Read(p []byte) (int, error) {
	if s.ended != nil {
		return 0, s.ended
	}
	n, err := s.answer.Body.Read(p)
	s.read += int64(n)
	switch err {
	case nil:
		return n, nil
	case io.EOF:
		s.ended = s.complete()
	default:
		s.ended = fmt.Errorf("%w after %d bytes, at offset %d: %w", ErrCut, s.read, s.Offset+s.read, err)
	}
	return n, s.ended
}

// complete returns io.EOF if the whole body came, and an error if the trailers say otherwise.
func (s *Stream) complete() error {
	if why := s.answer.Trailer.Get(TrailerError); why != "" {
		return fmt.Errorf("the archive is not complete: %s", why)
	}
	if s.archive && s.answer.Trailer.Get(TrailerBytes) != strconv.FormatInt(s.read, 10) {
		return fmt.Errorf("%w after %d bytes, at offset %d: its end does not say that it is complete", ErrCut, s.read, s.Offset+s.read)
	}
	return io.EOF
}

// Skipped says, after the end of an archive, how many entries it leaves out, since they are neither
// files nor directories nor symbolic links, and the refs of the first few.
func (s *Stream) Skipped() (count int, first []string) {
	number, refs, _ := strings.Cut(s.answer.Trailer.Get(TrailerSkipped), " ")
	count, err := strconv.Atoi(number)
	if err != nil {
		return 0, nil
	}
	return count, strings.Fields(refs)
}

// Close ends the stream, complete or not.
func (s *Stream) Close() error { return s.answer.Body.Close() }
