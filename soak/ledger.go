package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// method is the name of a CSI call.
type method string

const (
	getCapabilities method = "NodeGetCapabilities"
	publish         method = "NodePublishVolume"
	unpublish       method = "NodeUnpublishVolume"
)

// methods are all of them, in the order of the report.
var methods = []method{getCapabilities, publish, unpublish}

// ofVolume tells whether the method changes a volume.
func (m method) ofVolume() bool { return m == publish || m == unpublish }

// settleLimit is how long a call may go on in the daemon that its client gave
// up. It excuses a refusal for so long and no longer: a volume that is refused
// for ever is not busy.
const settleLimit = 10 * time.Second

// longestStory is how many calls of a volume are remembered.
const longestStory = 16

// entry is one call in a [ledger].
type entry struct {
	method method
	from   time.Time
	to     time.Time
	err    error
	// contended: another call for the volume ran at the same time, or may have.
	contended bool
}

// ledger is the history of the calls for one volume. The zero value is ready.
type ledger struct {
	mu      sync.Mutex
	running map[*entry]struct{}
	// unsettled is when the last call ended whose client never learned what
	// became of it: the daemon may still be at work. Zero if there is none.
	unsettled time.Time
	recent    []entry
	firstSent map[method]time.Time
	firstOK   map[method]time.Time
}

// begin notes that a call is about to be sent.
func (l *ledger) begin(m method) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = make(map[*entry]struct{})
		l.firstSent = make(map[method]time.Time)
		l.firstOK = make(map[method]time.Time)
	}
	e := &entry{method: m, from: time.Now()}
	if _, ok := l.firstSent[m]; !ok {
		l.firstSent[m] = e.from
	}
	if !m.ofVolume() {
		return e
	}
	e.contended = !l.unsettled.IsZero() && e.from.Sub(l.unsettled) < settleLimit
	for other := range l.running {
		other.contended, e.contended = true, true
	}
	l.running[e] = struct{}{}
	return e
}

// end notes the answer and returns the finished entry.
func (l *ledger) end(e *entry, err error) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.to, e.err = time.Now(), err
	delete(l.running, e)
	if _, ok := l.firstOK[e.method]; !ok && err == nil {
		l.firstOK[e.method] = e.to
	}
	if e.method.ofVolume() {
		switch status.Code(err) {
		case codes.OK:
			// The calls for one volume are served one after the other, so
			// whatever was sent before this one is over.
			if e.from.After(l.unsettled) {
				l.unsettled = time.Time{}
			}
		case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
			l.unsettled = e.to
		}
	}
	if len(l.recent) == longestStory {
		l.recent = slices.Delete(l.recent, 0, 1)
	}
	l.recent = append(l.recent, *e)
	return *e
}

// sent is when the method was first sent, succeeded when it first succeeded.
// Whatever the call did, it did between the two.
func (l *ledger) sent(m method) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.firstSent[m]
}

func (l *ledger) succeeded(m method) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.firstOK[m]
}

// story tells the last calls, one line each.
func (l *ledger) story() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := make([]string, 0, len(l.recent))
	for _, e := range l.recent {
		said := "OK"
		if e.err != nil {
			said = fmt.Sprintf("%s: %s", status.Code(e.err), status.Convert(e.err).Message())
		}
		lines = append(lines, fmt.Sprintf("%s  %-19s %8s  %s",
			e.from.Format(clock), e.method, e.to.Sub(e.from).Round(10*time.Microsecond), said))
	}
	return lines
}
