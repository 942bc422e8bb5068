// Package logsink writes the lines of a log and never makes their author wait.
//
// It writes in the background and in order: a line at once, and those that follow
// within a moment together. While a write hangs, lines wait in a buffer. When the buffer is full it drops and counts them, and
// writes a line with their number in their place. So a reader that stalls loses
// lines, and stops nothing else.
package logsink

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// keepBuffer is what a buffer may take while nothing is in it.
const keepBuffer = 64 << 10

// rest is the time from one write to the next. On a busy node a write for each line
// costs more than the line.
const rest = 10 * time.Millisecond

// Config is what a Sink works with. All fields are required.
type Config struct {
	// Out is where the lines go.
	Out io.Writer
	// Most bounds the bytes that wait while a write hangs. As many may be in it.
	Most int
	// Dropped is called for each line that is dropped. It must not log.
	Dropped func()
	// Missing returns the line that stands in the place of dropped ones.
	Missing func(lines int) []byte
}

// Sink is a writer of whole lines that never waits. Its methods may be called from
// several goroutines.
type Sink struct {
	Config
	// wake holds a token when there is something to do, closing is closed by Close, and
	// ended when all was written after that.
	wake, closing, ended chan struct{}

	mu      sync.Mutex
	pending []byte
	// spare is an empty buffer that takes the place of pending.
	spare []byte
	// missing is how many lines were dropped behind those that are pending.
	missing int
	closed  bool
}

// New returns a sink, which has to be closed.
func New(cfg Config) *Sink {
	s := &Sink{Config: cfg, wake: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{})}
	go s.run()
	return s
}

// Write takes one line, or drops it. It never fails.
func (s *Sink) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Behind a line that is missing no other one is taken, so that the place is known.
	if s.closed || s.missing > 0 || len(s.pending)+len(line) > s.Most {
		s.missing++
		s.Dropped()
	} else {
		s.pending = append(s.pending, line...)
	}
	s.wakeUp()
	return len(line), nil
}

// Close ends the sink when everything is written, or when limit is over: what a
// reader that stalls has not taken by then is lost.
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
	default: // there is a token already
	}
}

// run writes what is pending, until the sink is closed and nothing is.
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
			n, err := s.Out.Write(lines)
			s.written(lines, n)
			if err != nil && closed {
				return
			}
			if err != nil {
				break // the next line tries again
			}
			select {
			case <-time.After(rest):
			case <-s.closing:
			}
		}
	}
}

// take returns what is pending with the line that says what is missing behind it.
func (s *Sink) take() (lines []byte, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 && s.missing == 0 {
		return nil, s.closed
	}
	lines = s.pending
	if s.missing > 0 {
		lines = append(lines, s.Missing(s.missing)...)
	}
	s.pending, s.spare, s.missing = s.spare, nil, 0
	return lines, s.closed
}

// written takes back the buffer of lines of which n bytes were written. The other
// lines count as dropped; there is nowhere to say why.
func (s *Sink) written(lines []byte, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range bytes.Count(lines[n:], []byte{'\n'}) {
		s.missing++
		s.Dropped()
	}
	if cap(lines) <= keepBuffer {
		s.spare = lines[:0]
	}
}
