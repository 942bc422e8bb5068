package actors

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
)

const (
	// linesAtOnce is how many lines of one kind a burst may write, linesPerSecond how many are
	// written each second of one that goes on. The first is more than a drain of a node brings;
	// a line has some 500 bytes, so the second keeps a burst of a million volumes at 50 kB/s.
	linesAtOnce    = 1000
	linesPerSecond = 100
	// summaryAfter is how long lines are counted that were left out, before their number is
	// logged.
	summaryAfter = time.Second
)

// lineLimit bounds the lines of one kind of event, which may come in any number: lines beyond the
// bound are counted, and their number is logged once a second.
type lineLimit struct {
	log logr.Logger
	// summary is the message of the line that has the number.
	summary string

	mu sync.Mutex
	// used are the lines that were written, less those that time has given back.
	used    float64
	since   time.Time
	leftOut int
	timer   *time.Timer
}

// allow tells whether one more line may be written now, and counts it if not.
func (l *lineLimit) allow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.used = max(l.used-now.Sub(l.since).Seconds()*linesPerSecond, 0)
	l.since = now
	if l.used+1 <= linesAtOnce {
		l.used++
		return true
	}
	if l.leftOut++; l.timer == nil {
		l.timer = time.AfterFunc(summaryAfter, l.flush)
	}
	return false
}

// flush logs how many lines were left out since the last time.
func (l *lineLimit) flush() {
	l.mu.Lock()
	leftOut := l.leftOut
	stopTimer(l.timer)
	l.leftOut, l.timer = 0, nil
	l.mu.Unlock()
	if leftOut > 0 {
		l.log.Info(l.summary, "count", leftOut)
	}
}
