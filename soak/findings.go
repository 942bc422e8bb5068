package main

import (
	"sync"
	"time"
)

// clock is how stories give the time; the daemon's log has dates of its own.
const clock = "15:04:05.000"

// promise names what was broken.
type promise string

const (
	refusedCall    promise = "a call was refused without need"
	neverSucceeded promise = "a call never succeeded"
	lostMarker     promise = "a marker was lost"
	writableVolume promise = "a read-only volume could be written"
	leftTarget     promise = "a target was left over"
	leakedMount    promise = "a mount was left over"
	deletedEarly   promise = "data was deleted early"
	halfDeleted    promise = "data was deleted in part"
	keptTooLong    promise = "data was kept for too long"
	leftData       promise = "data was left over"
	brokenDaemon   promise = "the daemon did not start, live or end as it should"
	unfinished     promise = "the run did not come to its end"
)

// promises are all of them, in the order of the report.
var promises = []promise{
	refusedCall, neverSucceeded, lostMarker, writableVolume, leftTarget, leakedMount,
	deletedEarly, halfDeleted, keptTooLong, leftData, brokenDaemon, unfinished,
}

// violation is one broken promise and the story that goes with it.
type violation struct {
	promise promise
	at      time.Time
	what    string
	// volume and pod are empty if it concerns no single volume.
	volume string
	pod    string
	// calls are the volume's last calls until then.
	calls []string
}

// longestFindings is how many violations are kept in full. A daemon that is
// wholly broken makes one for each call, and nobody reads them all.
const longestFindings = 1000

// findings collects violations. The zero value is ready.
type findings struct {
	mu    sync.Mutex
	kept  []violation
	count map[promise]int
	total int
}

// add notes a violation that concerns a volume, or none if v is nil.
func (f *findings) add(p promise, v *volume, what string) {
	found := violation{promise: p, at: time.Now(), what: what}
	if v != nil {
		found.volume, found.pod, found.calls = v.plan.id, v.pod, v.calls.story()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil {
		f.count = make(map[promise]int)
	}
	f.count[p]++
	f.total++
	if len(f.kept) < longestFindings {
		f.kept = append(f.kept, found)
	}
}

// all returns the violations so far.
func (f *findings) all() []violation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]violation(nil), f.kept...)
}

// number returns how many violations there are, of one promise or of all.
func (f *findings) number(p promise) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[p]
}

func (f *findings) sum() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}
