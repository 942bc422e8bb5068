package api

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"
)

// progress is how much a client has to read within the stall limit. A client that reads a byte now
// and then does not get a stream.
const progress = 64 << 10

// sender sends the body of a stream. A write ends with an error when the client does not read, and
// when the stream is cut.
type sender struct {
	a  *answer
	mu sync.Mutex
	// over says that the stream was cut, or has ended. No deadline is set from then on: after a cut it
	// stays in the past, and after the end it is that of the next request.
	over bool
}

// Write sends p, with a new deadline for each 64 KiB.
func (s *sender) Write(p []byte) (written int, err error) {
	for chunk := range slices.Chunk(p, progress) {
		s.renew()
		n, err := s.a.Write(chunk)
		written += n
		s.a.sent += int64(n)
		s.a.h.Metrics.BytesRead(int64(n))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return written, errors.Join(errStalled, err)
		case err != nil:
			return written, errors.Join(errLeft, err)
		}
	}
	return written, nil
}

func (s *sender) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.a.allow(s.a.h.stall)
	}
}

// cut ends the write that runs, if it waits for the client, and all later ones.
func (s *sender) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	_ = s.a.control.SetWriteDeadline(time.Unix(1, 0))
}

// end is called when the handler ends. A cut that comes later leaves the connection alone.
func (s *sender) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}
