package history

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/workload"
)

// Span is a time in which something was wrong with the node.
type Span struct {
	Kind workload.FaultKind
	From time.Time
	// To is zero while it lasts.
	To time.Time
	// What says more for the report, such as by how much a clock stepped; Step is that.
	What string
	Step time.Duration
}

// Timeline has the faults of the node and when they were. The zero value is
// ready, and it may be used by many goroutines.
type Timeline struct {
	mu    sync.Mutex
	spans []*Span
}

// Begin notes that a fault begins; the returned function notes its end.
func (t *Timeline) Begin(kind workload.FaultKind, what string) (end func()) {
	return t.begin(&Span{Kind: kind, What: what})
}

// BeginStep notes that the wall clock of the driver is about to step.
func (t *Timeline) BeginStep(by time.Duration) (end func()) {
	return t.begin(&Span{Kind: workload.ClockStep, What: fmt.Sprintf("by %s", by), Step: by})
}

// Offset is by how much the wall clock of the driver differs from the machine's, after all steps.
func (t *Timeline) Offset() (offset time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.spans {
		offset += s.Step
	}
	return offset
}

func (t *Timeline) begin(s *Span) (end func()) {
	s.From = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans = append(t.spans, s)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if s.To.IsZero() {
			s.To = time.Now()
		}
	}
}

// Add notes a fault that was noticed only at its end, which is now.
func (t *Timeline) Add(kind workload.FaultKind, from time.Time, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans = append(t.spans, &Span{Kind: kind, From: from, To: time.Now(), What: what})
}

// During reports whether there was a fault of any of the kinds at any time from
// one moment to another. To ask with some slack, widen the two.
func (t *Timeline) During(from, to time.Time, kinds ...workload.FaultKind) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.spans {
		if slices.Contains(kinds, s.Kind) && !s.From.After(to) && (s.To.IsZero() || !s.To.Before(from)) {
			return true
		}
	}
	return false
}

// Spans returns all faults so far, in the order in which they were noticed.
func (t *Timeline) Spans() []Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Span, 0, len(t.spans))
	for _, s := range t.spans {
		list = append(list, *s)
	}
	return list
}
