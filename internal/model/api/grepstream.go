package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// mostRecord bounds a record of a search: a path of 4,096 bytes, each encoded in three, and a text, each byte of it encoded in six.
const mostRecord = 32 << 10

// GrepStream is the answer to a search.
type GrepStream[V any] struct {
	body  io.Closer
	lines *bufio.Reader
	ended bool
}

// OpenGrep returns the records of an answer that is not an error. The caller closes them.
func OpenGrep[V any](answer *http.Response) *GrepStream[V] {
	return &GrepStream[V]{body: answer.Body, lines: bufio.NewReaderSize(answer.Body, mostRecord)}
}

// Next returns the next record. The error is io.EOF behind the End alone; one of an answer that was cut before wraps [ErrCut].
func (s *GrepStream[V]) Next() (r GrepRecord[V], err error) {
	if s.ended {
		return r, io.EOF
	}
	line, err := s.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return r, fmt.Errorf("a record of the search is longer than %d bytes", mostRecord)
	case errors.Is(err, io.EOF):
		return r, fmt.Errorf("%w: %w", ErrCut, io.ErrUnexpectedEOF)
	case err != nil:
		return r, fmt.Errorf("%w: %w", ErrCut, err)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("read a record of the search: %w", err)
	}
	s.ended = r.End != nil
	return r, nil
}

// Buffered reports whether more of the answer is there already.
func (s *GrepStream[V]) Buffered() bool { return s.lines.Buffered() > 0 }

// Close ends the search.
func (s *GrepStream[V]) Close() error { return s.body.Close() }

// Grep searches retained volumes. The caller closes the answer.
func (c *Client) Grep(ctx context.Context, q GrepQuery) (*GrepStream[Volume], error) {
	answer, err := c.exchange(ctx, Request{Method: http.MethodGet, Path: GrepPath, Query: q.values(), Stream: true})
	if refused := (*Error)(nil); errors.As(err, &refused) && answer.Header.Get(HeaderLevel) < LevelGrep {
		switch refused.Code {
		case http.StatusNotFound, http.StatusMethodNotAllowed:
			return nil, fmt.Errorf("%s is of an older version, which does not search volumes: %w", c.caller.Server, ErrOlder)
		}
	}
	if err != nil {
		return nil, err
	}
	return OpenGrep[Volume](answer), nil
}
