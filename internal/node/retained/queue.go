// Package retained is the queue of the retained volumes. It knows which one goes next, how long a
// volume that could not be deleted has to wait, and what the volumes take on the disk. It lists
// them, the newest first, for people.
//
// A node may retain a million volumes, for hours. So a volume takes little memory, and that memory
// holds no pointers: the garbage collector does not look inside. See [GCPercent] for the other
// half. The package does no I/O, starts no goroutine and never asks for the time.
package retained

import (
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// Queue holds the retained volumes and knows which one goes next. The zero Queue is empty and ready
// to use. Its exported fields do not change once it holds volumes. It is not safe for concurrent use.
//
// Volumes go in this order:
//
//  1. those whose time is over ([Queue.Over]);
//  2. of a namespace that retains more than it may ([Queue.Surplus]): its own, in the order that
//     follows here;
//  3. when room is needed ([Queue.Early]): the released ones, those of pods that Succeeded, then all
//     others. Among these it is the deadline under the pressure factor that counts, or, in a fair
//     queue, how much the namespace retains;
//  4. when that was not enough ([Queue.Guaranteed]): those that are younger than MinLifespan, then
//     the pinned ones.
type Queue struct {
	// Grew, if set, is called whenever the queue takes more memory, with how many bytes it takes.
	// It never takes less again.
	Grew func(bytes int)
	// MinLifespan is how long a volume is kept that is not released, whatever the pressure is.
	MinLifespan time.Duration
	// Fair: a namespace that retains more than an average one loses its oldest volume first.
	Fair bool
	// MaxRetained, if set, returns how much a namespace may retain. Zero bytes or inodes set no limit.
	// It may return another limit later; see [Queue.Recheck].
	MaxRetained func(namespace string) volume.Size

	table      table
	classes    classes
	unmeasured []number // the entries without a size
	bytes      int64    // the sum of the others' sizes
	postponed  postponed
	kept       map[number]struct{} // the entries that do not go
	index      index
	tenants    tenants
}

// Follow tells the queue what the wall clock shows now. The times that the queue returns go by that: after a step
// of the wall clock all of them are as far from now as they were before. It costs a subtraction, except after a step.
// The caller does so before it asks for what people see; deadlines do not need it.
func (q *Queue) Follow(now time.Time) {
	if q.table.clock.follow(now) {
		q.index.changes++
		q.index.holdings.recount()
	}
}

// Push adds a volume, in place of an older record of the same ID. A record in phase
// [volume.Deleting], whose deletion a crash interrupted, is due at once. The queue does not keep
// the targets of a record: a retained volume has none.
//
// The Unpublished times of all records must carry a monotonic clock reading, or none of them: times
// of both kinds have no common order when the wall clock was stepped.
func (q *Queue) Push(r volume.Record) { q.enqueue(q.insert(r), false) }

func (q *Queue) insert(r volume.Record) number {
	q.Take(r.ID)
	n := q.tabulate(&r)
	q.enter(n)
	return n
}

// enter puts an entry into the lists that have all of them.
func (q *Queue) enter(n number) {
	q.addSize(n)
	if q.indexes(n) {
		q.index.insert(&q.table, n)
	}
}

// tabulate gives a volume an entry.
func (q *Queue) tabulate(r *volume.Record) number {
	before := q.table.memory()
	n := q.table.insert(r)
	if now := q.table.memory(); now > before && q.Grew != nil {
		q.Grew(now)
	}
	return n
}

// enqueue puts an entry into the heap of its class. newest: no other one was unpublished later.
func (q *Queue) enqueue(n number, newest bool) {
	q.classes.push(&q.table, n, newest)
	if q.tells() {
		q.tenants.enter(&q.table, n, newest)
	}
}

// tells reports whether namespaces are told apart.
func (q *Queue) tells() bool { return q.Fair || q.MaxRetained != nil }

// Asleep is what the queue knows of a volume.
type Asleep struct {
	volume.Record
	Size  volume.Size // zero if it is not known: the data directory has at least its own inode
	Tries int         // how often the volume could not be deleted
}

// Take removes a volume and returns what was known of it. It costs O(log n).
func (q *Queue) Take(id volume.ID) (Asleep, bool) {
	n := q.table.find(id)
	if n == 0 {
		return Asleep{}, false
	}
	return q.take(n), true
}

// Look returns what is known of a volume, which stays in the queue.
func (q *Queue) Look(id volume.ID) (Asleep, bool) {
	n := q.table.find(id)
	if n == 0 {
		return Asleep{}, false
	}
	return q.look(n), true
}

func (q *Queue) look(n number) Asleep {
	a := Asleep{Record: q.table.record(n), Tries: int(q.postponed.waits[n].tries)}
	if s := q.table.entry(n).size; s.known() {
		a.Size = s.size()
	}
	return a
}

func (q *Queue) take(n number) Asleep {
	a := q.look(n)
	q.dropSize(n)
	if q.indexes(n) {
		q.index.remove(n)
	}
	if _, kept := q.kept[n]; kept {
		delete(q.kept, n)
		q.tenants.part(n)
	} else if !q.postponed.remove(n) {
		q.tenants.leave(n)
		q.classes.remove(&q.table, n)
	}
	q.table.remove(n)
	return a
}

// Has reports whether the volume is in the queue, as one of that pod.
func (q *Queue) Has(p volume.Place) bool {
	n := q.table.find(p.ID)
	return n != 0 && q.table.pod(n) == p.Pod
}

// Len returns the number of volumes in the queue.
func (q *Queue) Len() int { return q.table.length }

// garbage is how much garbage may wait for a collection in a process with a large queue: about
// twice the daemon's heap without the queue.
const garbage = 32 << 20

// GCPercent returns the garbage collector's target ([debug.SetGCPercent]) for a process with a
// queue of that many bytes. By default the heap may double between two collections. The queue
// hardly changes, so the room to double would be wasted: at a million volumes some 150 MB.
//
// A low target costs no more CPU: the collector does not look inside the queue.
func GCPercent(queue int) int { return 100 * garbage / (garbage + queue) }
