package main

import (
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// methodStats counts the calls of one method.
type methodStats struct {
	calls     int
	codes     map[codes.Code]int
	latencies []time.Duration // of those that succeeded
	// fresh are the latencies since the last sample.
	fresh []time.Duration
}

// stats counts what happened in a run. Make it with newStats.
type stats struct {
	mu        sync.Mutex
	methods   map[method]*methodStats
	pods      int
	volumes   int
	doubled   int
	cancelled int
	kills     int
	// published counts the volumes that are mounted now, retained those whose
	// marker is followed to its deadline.
	published int
	retained  int
	// seen counts the markers that were there in the last second of their
	// lifespan, expired those whose data went after it.
	seen    int
	expired int
	// late is how long after its deadline data was seen to be gone.
	late []time.Duration
	// consumed is complete after the daemon's end.
	consumed consumed
	samples  []sample
	marks    []mark
	began    time.Time
}

func newStats() *stats { return &stats{methods: make(map[method]*methodStats), began: time.Now()} }

// update changes the numbers.
func (s *stats) update(change func(*stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// add counts one call.
func (s *stats) add(e entry, cancelled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.methods[e.method]
	if m == nil {
		m = &methodStats{codes: make(map[codes.Code]int)}
		s.methods[e.method] = m
	}
	m.calls++
	m.codes[status.Code(e.err)]++
	if e.err == nil {
		m.latencies = append(m.latencies, e.to.Sub(e.from))
		m.fresh = append(m.fresh, e.to.Sub(e.from))
	}
	// A call that was faster than its cancellation was not cancelled.
	if cancelled && e.err != nil {
		s.cancelled++
	}
}

// method returns the numbers of a method, whether it was called or not.
func (s *stats) method(name method) *methodStats {
	if m := s.methods[name]; m != nil {
		return m
	}
	return &methodStats{}
}

// totals is the short form of stats for the progress report.
type totals struct {
	pods, expired, calls, errors int
}

func (s *stats) totals() totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sums()
}

// sums is totals for who has the lock.
func (s *stats) sums() totals {
	t := totals{pods: s.pods, expired: s.expired}
	for _, m := range s.methods {
		t.calls += m.calls
		t.errors += m.calls - m.codes[codes.OK]
	}
	return t
}

// quantile returns the value below which the share q of the durations lies
// (nearest rank); 0 if there are none. It sorts them.
func quantile(durations []time.Duration, q float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	slices.Sort(durations)
	rank := int(math.Ceil(q * float64(len(durations))))
	return durations[max(rank, 1)-1]
}
