package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"

	"github.com/katbox/katbox/internal/model/sealed"
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
	// Length is how many bytes the stream has; -1 for an archive.
	Length int64
	// ETag names the contents, for a [BytesQuery] that resumes.
	ETag string
	// ContentType is "text/plain; charset=utf-8" for a file that begins with text.
	ContentType string
	// Node is the name of the node.
	Node string

	body io.ReadCloser
	// archive is nil for a file.
	archive *sealed.Reader
	read    int64
	// ended is what Read returns from now on.
	ended error
}

// OpenStream returns the stream in an answer to q that is not an error. The caller closes the stream;
// that closes the answer's body.
func OpenStream(answer *http.Response, q BytesQuery) *Stream {
	s := &Stream{
		Size: number(answer.Header, HeaderSize), Offset: max(0, number(answer.Header, HeaderOffset)), Length: -1, body: answer.Body,
		ETag: answer.Header.Get("ETag"), ContentType: answer.Header.Get("Content-Type"), Node: answer.Header.Get(HeaderNode),
	}
	if q.Archive {
		s.archive = sealed.NewReader(answer.Body, q.Seal)
	} else {
		s.Length = lengthOf(answer, q.Limit)
	}
	return s
}

// number reads a header; it is -1 if there is none.
func number(header http.Header, name string) int64 {
	n, err := strconv.ParseInt(header.Get(name), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

var rangeForm = regexp.MustCompile(`^bytes ([0-9]{1,18})-([0-9]{1,18})/`)

// lengthOf returns how many bytes of a file an answer has to have; -1 if nothing says so. A proxy that has got
// fewer may have made that the Content-Length, or taken it out. limit is that of the request.
func lengthOf(answer *http.Response, limit int64) int64 {
	if found := rangeForm.FindStringSubmatch(answer.Header.Get("Content-Range")); found != nil {
		first, _ := strconv.ParseInt(found[1], 10, 64)
		last, _ := strconv.ParseInt(found[2], 10, 64)
		return max(0, last-first+1)
	}
	size, offset := number(answer.Header, HeaderSize), number(answer.Header, HeaderOffset)
	switch left := size - offset; {
	case size < 0 || offset < 0 || left < 0:
		return answer.ContentLength
	case limit > 0:
		return min(left, limit)
	default:
		return left
	}
}

// Read reads the next bytes.
func (s *Stream) Read(p []byte) (n int, err error) {
	if s.ended != nil {
		return 0, s.ended
	}
	if s.archive != nil {
		n, err = s.archive.Read(p)
	} else {
		n, err = s.body.Read(p)
	}
	s.read += int64(n)
	switch {
	case err == nil:
		return n, nil
	case errors.As(err, new(*sealed.FaultError)):
		s.ended = err
	case errors.Is(err, io.EOF) && (s.archive != nil || s.read == s.Length):
		s.ended = io.EOF
	case errors.Is(err, io.EOF):
		s.ended = s.cut(io.ErrUnexpectedEOF)
	default:
		s.ended = s.cut(err)
	}
	return n, s.ended
}

func (s *Stream) cut(why error) error {
	return fmt.Errorf("%w after %d bytes, at offset %d: %w", ErrCut, s.read, s.Offset+s.read, why)
}

// Skipped says, after the end of an archive, how many entries it leaves out, since they are neither
// files nor directories nor symbolic links, and the refs of the first few.
func (s *Stream) Skipped() (count int, first []string) {
	if s.archive == nil {
		return 0, nil
	}
	notes := s.archive.Notes()
	return notes.Skipped, notes.SkippedRefs
}

// Unmatched says, after the end of an archive, which of the request's patterns to exclude have left nothing out, by
// their places.
func (s *Stream) Unmatched() []int {
	if s.archive == nil {
		return nil
	}
	return s.archive.Notes().Unmatched
}

// Close ends the stream, complete or not.
func (s *Stream) Close() error { return s.body.Close() }
