// Package logsink writes log lines without ever blocking the code that logs.
//
// It writes in the background and in order. While a write hangs, lines wait in a buffer. When that
// is full, it drops and counts lines, and writes a line with their number in their place.
package logsink

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// keepBuffer bounds the size of an empty buffer that is kept.
const keepBuffer = 64 << 10

// rest is the time between two writes. One write for each line costs a busy node more than the
// line.
const rest = 10 * time.Millisecond

// Config is what a Sink works with. All fields are required.
type Config struct {
	Out io.Writer
	// Most bounds the bytes that wait while a write hangs. The write may hold as many.
	Most int
	// Dropped is called for each dropped line. It must not log.
	Dropped func()
	// Missing returns the line that is written in place of dropped lines.
	Missing func(lines int) []byte
}

// Sink is a writer of whole lines. Its methods may be called from several goroutines.
type Sink struct {
	cfg Config
	// wake contains a token when there is work. Close closes closing; ended is closed when all
	// lines are written after that.
	wake, closing, ended chan struct{}

	mu      sync.Mutex
	pending []byte
	spare   []byte // an empty buffer that takes the place of pending
	missing int    // how many lines were dropped behind those that are pending
	closed  bool
}

// New returns a sink. Close it.
func New(cfg Config) *Sink {
	s := &Sink{cfg: cfg, wake: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{})}
	go s.run()
	return s
}

// Write accepts one line or drops it. It never fails.
func (s *Sink) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// After a dropped line all others are dropped, too: the missing ones are in one place.
	if s.closed || s.missing > 0 || len(s.pending)+len(line) > s.cfg.Most {
		s.missing++
		s.cfg.Dropped()
	} else {
		s.pending = append(s.pending, line...)
	}
	s.wakeUp()
	return len(line), nil
}

// Close returns when everything is written, or after limit: lines that the reader has not taken by
// then are lost.
func (s *Sink) Close(limit time.Duration) {
	s.mu.Lock()
	if !s.closed {
		close(s.closing)
	}
	s.closed = true
	s.wakeUp()
	s.mu.Unlock()
	select {
	case <-s.ended:
	case <-time.After(limit):
	}
}

func (s *Sink) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default: // it has a token already
	}
}

// run writes pending lines until the sink is closed and none are left.
func (s *Sink) run() {
	defer close(s.ended)
	for range s.wake {
		for {
			lines, closed := s.take()
			if len(lines) == 0 && closed {
				return
			}
			if len(lines) == 0 {
				break
			}
			n, err := s.cfg.Out.Write(lines)
			s.written(lines, n)
			if err != nil && closed {
				return
			}
			if err != nil {
				break // retried with the next line
			}
			select {
			case <-time.After(rest):
			case <-s.closing:
			}
		}
	}
}

// take returns the pending lines, and the line about those missing behind them.
func (s *Sink) take() (lines []byte, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 && s.missing == 0 {
		return nil, s.closed
	}
	lines = s.pending
	if s.missing > 0 {
		lines = append(lines, s.cfg.Missing(s.missing)...)
	}
	s.pending, s.spare, s.missing = s.spare, nil, 0
	return lines, s.closed
}

// written takes back the buffer of lines, of which n bytes were written. The rest was dropped.
func (s *Sink) written(lines []byte, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range bytes.Count(lines[n:], []byte{'\n'}) {
		s.missing++
		s.cfg.Dropped()
	}
	if cap(lines) <= keepBuffer {
		s.spare = lines[:0]
	}
}
