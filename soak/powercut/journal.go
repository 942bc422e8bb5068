package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/story"
)

// journal prints the acks. It may be used by many goroutines.
type journal struct {
	mu  sync.Mutex
	out io.Writer
}

// add prints a line and returns when it is out: by one write, so that a cut leaves
// no halves of two.
func (j *journal) add(e story.Event) error {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := io.WriteString(j.out, e.String()+"\n"); err != nil {
		return fmt.Errorf("print an ack: %w", err)
	}
	return nil
}
