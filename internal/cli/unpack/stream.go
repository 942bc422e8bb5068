package unpack

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/katbox/katbox/internal/lib/sparse"
)

const (
	// bufferSize is how much content is read at once.
	bufferSize = 256 << 10
	// maxHeader bounds the header of one entry. archive/tar reads 1 MiB of records.
	maxHeader = 2 << 20
)

var zeros [sparse.BlockSize]byte

// entry is a header of the archive. Its content is the next in the stream.
type entry struct {
	*tar.Header
	// extents are the parts of the file that the stream has, in order.
	extents []sparse.Extent
}

// sparse reports whether the file has holes that the stream does not have.
func (e *entry) sparse() bool {
	stored := int64(0)
	for _, x := range e.extents {
		stored += x.Length
	}
	return stored < e.Size
}

// stream reads an archive entry by entry. archive/tar decodes the headers, each by itself. The stream
// finds where they begin and end, for it has to read over holes and insist on the archive's end.
type stream struct {
	ctx context.Context // that of Unpack, which makes a stream for itself alone
	// reading is locked except while r is read.
	reading  *sync.Mutex
	r        *bufio.Reader
	progress func(int64)
	// bytes were read so far, shown of them were told to progress.
	bytes, shown int64
	// ended: r has no more. failed is its error.
	ended  bool
	failed error
	header []byte
	// left is what was not read yet of the entry's content; padding comes after it.
	left, padding int64
}

// Read reads from the archive. Its end is io.ErrUnexpectedEOF: what says that an archive is complete
// is in it.
func (s *stream) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		s.failed = context.Cause(s.ctx)
		return 0, s.failed
	}
	s.reading.Unlock()
	n, err := s.r.Read(b)
	s.reading.Lock()
	s.bytes += int64(n)
	if s.progress != nil && s.bytes >= s.shown+bufferSize {
		s.shown = s.bytes
		s.progress(s.bytes)
	}
	if err == io.EOF {
		s.ended, err = true, io.ErrUnexpectedEOF
	}
	if err != nil {
		s.failed = err
	}
	return n, err
}

// next reads the next header. The content before it must have been read, or skipped. It returns
// io.EOF at the archive's end.
func (s *stream) next() (*entry, error) {
	s.header = s.header[:0]
	for {
		if err := s.more(sparse.BlockSize); err != nil {
			return nil, err
		}
		block := s.header[len(s.header)-sparse.BlockSize:]
		if bytes.Equal(block, zeros[:]) {
			return nil, s.end()
		}
		records, size, err := sparse.Records(block)
		if err != nil {
			return nil, err
		}
		if !records {
			break
		}
		if size > maxHeader {
			return nil, errors.New("a header is too long")
		}
		if err := s.more(sparse.Padded(size)); err != nil {
			return nil, err
		}
	}
	if err := sparse.Hide(s.header); err != nil {
		return nil, err
	}
	h, err := tar.NewReader(bytes.NewReader(s.header)).Next()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		// It expects more than a header here. The archive does not end.
		err = tar.ErrHeader
	}
	if err != nil {
		return nil, fmt.Errorf("read a header of the archive: %w", err)
	}
	return s.content(h)
}

// content prepares reading the content of an entry.
func (s *stream) content(h *tar.Header) (*entry, error) {
	e := &entry{Header: h}
	stored, ok, err := sparse.GetHeader(h)
	if err != nil {
		return nil, err
	}
	switch {
	case h.Typeflag != tar.TypeReg:
		s.left, s.padding = 0, 0
		return e, nil
	case !ok:
		stored = h.Size
		e.extents = []sparse.Extent{{Length: h.Size}}
	}
	s.padding = sparse.Padded(stored) - stored
	s.left = stored
	if ok {
		var length int64
		if e.extents, length, err = sparse.ReadMap(s, h.Size, stored); err != nil {
			return nil, fmt.Errorf("%q: %w", h.Name, err)
		}
		s.left -= length
	}
	return e, nil
}

// more appends the next n bytes of the archive to the header.
func (s *stream) more(n int64) error {
	begin := len(s.header)
	if int64(begin)+n > maxHeader {
		return errors.New("a header is too long")
	}
	s.header = append(s.header, make([]byte, n)...)
	_, err := io.ReadFull(s, s.header[begin:])
	return err
}

// end is called after the first of the two blocks of zeros that end an archive.
func (s *stream) end() error {
	if len(s.header) != sparse.BlockSize {
		return errors.New("the archive ends within a header")
	}
	if err := s.more(sparse.BlockSize); err != nil {
		return err
	}
	if !bytes.Equal(s.header[sparse.BlockSize:], zeros[:]) {
		return errors.New("the archive has one block of zeros where two end it")
	}
	// The rest is read, so that an error behind the end is seen.
	if _, err := io.Copy(io.Discard, s); !s.ended {
		return err
	}
	return io.EOF
}

// full fills b with content.
func (s *stream) full(b []byte) error {
	n, err := io.ReadFull(s, b)
	s.left -= int64(n)
	return err
}

// skip reads over what is left of an entry.
func (s *stream) skip() error {
	_, err := io.CopyN(io.Discard, s, s.left+s.padding)
	s.left, s.padding = 0, 0
	return err
}
