package handlers

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/katbox/katbox/internal/model/api"
)

// progress is how much a client has to read within the stall limit. A client that reads a byte now
// and then does not get a stream.
const progress = 64 << 10

// sender sends the body of a stream, not faster than the handler's rate. A write ends with an error when the client does not read, and
// when the stream is cut.
type sender struct {
	a *answer
	// rate is nil if there is no bound.
	rate *rate.Limiter
	// stall is how long the client may take to read the next 64 KiB.
	stall time.Duration
	mu    sync.Mutex
	// renewed is when the last deadline was set.
	renewed time.Time
	// over says that the stream was cut, or has ended. No deadline is set from then on: after a cut it
	// stays in the past, and after the end it is that of the next request.
	over bool
}

// newSender returns the sender of a stream whose namespace has that many, this one among them. The more it has, the sooner
// one that stands still gives its slot back.
func newSender(a *answer, streams int) *sender {
	s := &sender{a: a, stall: a.h.stall / time.Duration(max(1, streams))}
	if a.h.ReadRate > 0 {
		s.rate = rate.NewLimiter(rate.Limit(a.h.ReadRate), progress)
	}
	return s
}

// Write sends p, with a new deadline for each 64 KiB.
func (s *sender) Write(p []byte) (written int, err error) {
	for chunk := range slices.Chunk(p, progress) {
		if s.rate != nil {
			if err := s.rate.WaitN(s.a.r.Context(), len(chunk)); err != nil {
				return written, errors.Join(api.ErrLeft, err)
			}
		}
		s.renew()
		n, err := s.a.Write(chunk)
		written += n
		s.a.h.Metrics.BytesRead(int64(n))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), err != nil && s.expired(): // HTTP/2 does not say why
			return written, errors.Join(errStalled, err)
		case err != nil:
			return written, errors.Join(api.ErrLeft, err)
		}
	}
	return written, nil
}

func (s *sender) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.renewed = time.Now()
		s.a.Allow(s.stall)
	}
}

// expired reports whether the deadline of the last write is over.
func (s *sender) expired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.over && time.Since(s.renewed) >= s.stall
}

// cut ends the write that runs, if it waits for the client, and all later ones.
func (s *sender) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	_ = s.a.Control.SetWriteDeadline(time.Unix(1, 0))
}

// end is called when the handler ends. A cut that comes later leaves the connection alone.
func (s *sender) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}
