package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// lookInterval is how often markers near their deadline are looked at.
	lookInterval = 100 * time.Millisecond
	// lastMoments is when the watch of a marker begins, before its deadline.
	lastMoments = time.Second
)

// watch follows the markers of retained volumes until they are gone, and
// reports those that go too early or too late.
type watch struct {
	lifespan time.Duration
	// tolerance is how late the daemon may delete.
	tolerance time.Duration
	stats     *stats
	findings  *findings

	// looking lets one pass look at a time.
	looking sync.Mutex

	mu       sync.Mutex
	retained []*retained
	closed   bool
}

// retained is a volume whose data lives on. The daemon set the deadline at some
// moment between the first unpublish that it was sent and the first that it
// confirmed, so the soak knows the deadline as an interval.
type retained struct {
	volume *volume
	// earliest is the first moment at which data may go; deadline is the last
	// one that the daemon can have meant; after latest it is kept for too long.
	earliest time.Time
	deadline time.Time
	latest   time.Time
	// seen says that the marker was there in its last moments.
	seen bool
}

// judge says what it means that the data was found so by a look between the two
// times: the promise it breaks, if any, and whether the volume's story is over.
func (r *retained) judge(before, after time.Time, found presence) (broken promise, over bool) {
	early := after.Before(r.earliest)
	switch {
	case found == whole && before.After(r.latest):
		return keptTooLong, true
	case found == whole:
		return "", false
	case found == gone && early:
		return deletedEarly, true
	case found == gone:
		return "", true
	case early:
		return lostMarker, true
	default:
		return halfDeleted, true
	}
}

// add hands a volume over whose unpublish succeeded.
func (w *watch) add(v *volume) {
	deadline := v.calls.succeeded(unpublish).Add(w.lifespan)
	r := &retained{
		volume:   v,
		earliest: v.calls.sent(unpublish).Add(w.lifespan),
		deadline: deadline,
		latest:   deadline.Add(w.tolerance),
	}
	w.stats.update(func(s *stats) { s.retained++ })
	if w.look(r) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retained = append(w.retained, r)
}

// close says that no more volumes come.
func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// run follows the markers until none is left after close, or the run ends.
func (w *watch) run(ctx context.Context) {
	for {
		left, closed := w.pass(lastMoments)
		if closed && left == 0 {
			return
		}
		if sleep(ctx, lookInterval) != nil {
			return
		}
	}
}

// pass looks at the markers whose deadline is not further away than the given
// time. It returns how many volumes are left to follow.
func (w *watch) pass(ahead time.Duration) (left int, closed bool) {
	w.looking.Lock()
	defer w.looking.Unlock()
	w.mu.Lock()
	all := slices.Clone(w.retained)
	w.mu.Unlock()
	over := make(map[*retained]bool)
	for _, r := range all {
		if time.Until(r.earliest) <= ahead && w.look(r) {
			over[r] = true
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retained = slices.DeleteFunc(w.retained, func(r *retained) bool { return over[r] })
	return len(w.retained), w.closed
}

// look looks at one marker and tells whether its story is over. It is called
// from one goroutine at a time for each volume.
func (w *watch) look(r *retained) (over bool) {
	before := time.Now()
	found, err := r.volume.look(r.volume.data)
	after := time.Now()
	broken, over := r.judge(before, after, found)
	if found == whole && !r.seen && after.After(r.earliest.Add(-lastMoments)) {
		r.seen = true
		w.stats.update(func(s *stats) { s.seen++ })
	}
	if over {
		w.stats.update(func(s *stats) { s.retained-- })
	}
	switch {
	case broken == keptTooLong:
		w.findings.add(broken, r.volume, fmt.Sprintf("its deadline was %s at the latest, and its marker is still there %s later",
			r.deadline.Format(clock), before.Sub(r.deadline).Round(time.Millisecond)))
	case broken != "":
		w.findings.add(broken, r.volume, fmt.Sprintf("its deadline is %s at the earliest, and at %s: %v",
			r.earliest.Format(clock), after.Format(clock), err))
	case over:
		w.stats.update(func(s *stats) {
			s.expired++
			s.late = append(s.late, max(0, after.Sub(r.deadline)))
		})
	}
	return over
}
