package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	// progressInterval is how often the line changes.
	progressInterval = 200 * time.Millisecond
	// leastName is how many columns of the name are shown at least, if it is shown.
	leastName = 10
	// clearLine returns to the beginning of the line and empties it.
	clearLine = "\r\x1b[K"
)

// Progress shows on one line of a terminal how far a transfer is. A nil Progress shows nothing.
type Progress struct {
	w       io.Writer
	now     func() time.Time
	columns func() int
	what    string
	total   int64
	skipped int64

	mu      sync.Mutex
	done    int64
	started time.Time
	shown   time.Time
}

// NewProgress returns the progress of a transfer. total is how many bytes it has, 0 if that is not
// known; done is how many of them an earlier transfer brought. It returns nil if w is not a terminal, or
// is one that takes no escape sequences.
func NewProgress(w io.Writer, what string, done, total int64) *Progress {
	if !IsTerminal(w) || !takesEscapes(w) {
		return nil
	}
	return newProgress(w, time.Now, func() int { return Columns(w) }, what, done, total)
}

func newProgress(w io.Writer, now func() time.Time, columns func() int, what string, done, total int64) *Progress {
	return &Progress{w: w, now: now, columns: columns, what: Clean(what), total: total, done: done, skipped: done, started: now()}
}

// Write counts the bytes.
func (p *Progress) Write(b []byte) (int, error) {
	p.Add(int64(len(b)))
	return len(b), nil
}

// Add counts n more bytes, and shows the line if it is time to.
func (p *Progress) Add(n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	now := p.now()
	if now.Sub(p.shown) < progressInterval {
		return
	}
	p.shown = now
	fmt.Fprint(p.w, clearLine+p.line(now))
}

// line is what the transfer has reached: "out.log: 61 %, 1.2 GiB, 118 MiB/s". It is shorter than a line of
// the terminal, as that is now: on a longer one only its last part could be replaced.
func (p *Progress) line(now time.Time) string {
	figures := make([]string, 0, 3)
	if p.total > 0 {
		figures = append(figures, fmt.Sprintf("%d %%", min(100, int64(100*float64(p.done)/float64(p.total)))))
	}
	figures = append(figures, Size(p.done))
	if passed := now.Sub(p.started).Seconds(); passed > 0 {
		figures = append(figures, Size(int64(float64(p.done-p.skipped)/passed))+"/s")
	}
	text, room := strings.Join(figures, ", "), p.columns()-1
	if left := room - len(text) - len(": "); left >= min(leastName, Width(p.what)) {
		return Shorten(p.what, left) + ": " + text
	}
	for len(text) > room && len(figures) > 1 {
		figures = figures[:len(figures)-1]
		text = strings.Join(figures, ", ")
	}
	return text[:min(len(text), max(0, room))]
}

// End removes the line.
func (p *Progress) End() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shown.IsZero() {
		fmt.Fprint(p.w, clearLine)
	}
	p.shown = time.Time{}
}
