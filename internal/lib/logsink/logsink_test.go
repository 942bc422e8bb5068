package logsink

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// reader reads the log. It accepts every line unless it stalls or fails.
type reader struct {
	mu      sync.Mutex
	got     bytes.Buffer
	fails   error
	stalled chan struct{}
}

func (r *reader) Write(p []byte) (int, error) {
	r.mu.Lock()
	stalled, fails := r.stalled, r.fails
	r.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
	if fails != nil {
		return 0, fails
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.Write(p)
}

func (r *reader) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}

// stall makes writes hang until the function that it returns is called.
func (r *reader) stall() func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	stalled := make(chan struct{})
	r.stalled = stalled
	return func() {
		r.mu.Lock()
		r.stalled = nil
		r.mu.Unlock()
		close(stalled)
	}
}

func newSink(out *reader, most int) (*Sink, *atomic.Int64) {
	var dropped atomic.Int64
	return New(Config{
		Out: out, Most: most, Dropped: func() { dropped.Add(1) },
		Missing: func(lines int) []byte { return fmt.Appendf(nil, "%d missing\n", lines) },
	}), &dropped
}

func write(t *testing.T, s *Sink, lines ...string) {
	t.Helper()
	line := make([]byte, 0, 100) // a logger uses its buffer again
	for _, text := range lines {
		line = append(line[:0], text+"\n"...)
		if n, err := s.Write(line); n != len(line) || err != nil {
			t.Errorf("write %q: %d, %v", text, n, err)
		}
	}
}

func want(t *testing.T, when string, r *reader, lines ...string) {
	t.Helper()
	pass()
	if got := strings.ReplaceAll(r.text(), "\n", " "); strings.TrimSpace(got) != strings.Join(lines, " ") {
		t.Errorf("%s: %q, want %q", when, got, lines)
	}
}

// pass waits for the time between two writes.
func pass() {
	time.Sleep(2 * rest)
	synctest.Wait()
}

func TestLinesAreWrittenAtOnceAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		s, dropped := newSink(r, 100)
		write(t, s, "a")
		want(t, "without a close", r, "a")
		write(t, s, "b", "c")
		want(t, "two more", r, "a", "b", "c")
		s.Close(time.Hour)
		write(t, s, "late")
		want(t, "closed", r, "a", "b", "c")
		if dropped.Load() != 1 {
			t.Errorf("%d dropped, want the one that came after the close", dropped.Load())
		}
	})
}

// TestReaderThatStalls: writes do not block, lines without room are counted, and the log says
// how many lines are missing in their place.
func TestReaderThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		s, dropped := newSink(r, 8)
		write(t, s, "0")
		pass()
		goOn := r.stall()
		write(t, s, "a")
		pass() // "a" is being written
		write(t, s, "b", "longer", "c", "d")
		want(t, "stalled", r, "0")
		goOn()
		want(t, "it goes on", r, "0", "a", "b", "3 missing")
		if dropped.Load() != 3 {
			t.Errorf("%d dropped, want 3: no line overtakes one that is missing", dropped.Load())
		}
		write(t, s, "too long for the buffer")
		want(t, "one that never fits", r, "0", "a", "b", "3 missing", "1 missing")
		write(t, s, "e")
		s.Close(time.Hour)
		want(t, "closed", r, "0", "a", "b", "3 missing", "1 missing", "e")
	})
}

// TestCloseWaitsForAReaderForAWhile: the lines that it takes in that time are written, and
// Close returns without the rest.
func TestCloseWaitsForAReaderForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			stalls, waited time.Duration
			written        []string
		}{
			"slow":    {time.Second, time.Second, []string{"a", "b"}},
			"stalled": {time.Minute, 2 * time.Second, nil},
		} {
			r := &reader{}
			s, _ := newSink(r, 100)
			goOn := r.stall()
			write(t, s, "a")
			pass()
			write(t, s, "b")
			time.AfterFunc(tt.stalls, goOn)
			began := time.Now()
			s.Close(2 * time.Second)
			if waited := time.Since(began); waited != tt.waited {
				t.Errorf("%s: closed after %s, want %s", name, waited, tt.waited)
			}
			want(t, name, r, tt.written...)
			time.Sleep(time.Minute)
		}
	})
}

// TestReaderThatFails: the next line causes the next attempt, nothing else does.
func TestReaderThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{fails: errors.New("broken")}
		s, dropped := newSink(r, 100)
		write(t, s, "a")
		pass()
		if dropped.Load() != 1 {
			t.Errorf("%d dropped, want 1", dropped.Load())
		}
		r.mu.Lock()
		r.fails = nil
		r.mu.Unlock()
		write(t, s, "b")
		pass()
		write(t, s, "c")
		want(t, "it works again", r, "2 missing", "c")
		r.mu.Lock()
		r.fails = errors.New("broken")
		r.mu.Unlock()
		write(t, s, "d")
		s.Close(time.Hour)
		pass()
	})
}

// TestManyWriters: lines are whole, each writer's in order.
func TestManyWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		s, dropped := newSink(r, 1<<20)
		var all sync.WaitGroup
		for writer := range 8 {
			all.Go(func() {
				for i := range 500 {
					write(t, s, fmt.Sprintf("%d %d", writer, i))
				}
			})
		}
		all.Wait()
		s.Close(time.Hour)
		next := map[int]int{}
		for line := range strings.Lines(r.text()) {
			var writer, i int
			if _, err := fmt.Sscanf(line, "%d %d\n", &writer, &i); err != nil || i != next[writer] {
				t.Fatalf("line %q of a writer whose next one is %d (%v)", line, next[writer], err)
			}
			next[writer]++
		}
		if dropped.Load() != 0 || len(next) != 8 {
			t.Errorf("%d dropped, %d writers", dropped.Load(), len(next))
		}
	})
}
