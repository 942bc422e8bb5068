// Package retained is the queue of the retained volumes. It knows which one goes next, how long a
// volume that could not be deleted has to wait, and what the volumes take on the disk. It lists
// them, the newest first, for people.
//
// A node may retain a million volumes, for hours. So a volume takes little memory, and that memory
// holds no pointers: the garbage collector does not look inside. See [GCPercent] for the other
// half. The package does no I/O, starts no goroutine and never asks for the time.
package retained

import (
	"container/heap"
	"time"

	"github.com/katbox/katbox/internal/lifespan"
	"github.com/katbox/katbox/internal/volume"
)

// Queue holds the retained volumes and knows which one is due next. The zero Queue is empty and
// ready to use. It is not safe for concurrent use.
//
// Volumes of one lifespan are due in the order in which they were unpublished, whatever the
// pressure factor is. So there is one heap for each lifespan, usually one, and what is due next is
// one of the heads.
type Queue struct {
	// Grew, if set, is called whenever the queue takes more memory, with how many bytes it takes.
	// It never takes less again.
	Grew func(bytes int)

	table      table
	classes    map[class]*order
	unmeasured []number // the entries without a size
	bytes      int64    // the sum of the others' sizes
	postponed  postponed
	index      index
}

// class is what volumes have in common that are due in the order in which they were unpublished.
type class struct {
	keep     time.Duration
	deleting bool
}

func (t *table) class(n number) class {
	f := t.fate(n)
	if f.phase == volume.Deleting {
		return class{deleting: true}
	}
	return class{keep: volume.Record{Lifespan: f.lifespan, Hold: t.holds.of(n)}.Keep()}
}

// Push adds a volume, in place of an older record of the same ID. A record in phase
// [volume.Deleting], whose deletion a crash interrupted, is due at once. The queue does not keep
// the targets of a record: a retained volume has none.
//
// The Unpublished times of all records must carry a monotonic clock reading, or none of them: times
// of both kinds have no common order when the wall clock was stepped.
func (q *Queue) Push(r volume.Record) { q.enqueue(q.insert(r)) }

func (q *Queue) insert(r volume.Record) number {
	q.Take(r.ID)
	before := q.table.memory()
	n := q.table.insert(&r)
	if now := q.table.memory(); now > before && q.Grew != nil {
		q.Grew(now)
	}
	q.addSize(n)
	if q.indexes(n) {
		q.index.insert(n)
	}
	return n
}

// enqueue puts an entry into the heap of its class.
func (q *Queue) enqueue(n number) {
	if q.classes == nil {
		q.classes = make(map[class]*order)
	}
	c := q.table.class(n)
	h := q.classes[c]
	if h == nil {
		h = &order{table: &q.table, before: q.table.before}
		q.classes[c] = h
	}
	heap.Push(h, n)
}

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
	if !q.postponed.remove(n) {
		c := q.table.class(n)
		h := q.classes[c]
		heap.Remove(h, int(q.table.entry(n).place))
		if h.Len() == 0 {
			delete(q.classes, c)
		}
	}
	q.table.remove(n)
	return a
}

// Has reports whether the volume is in the queue, as one of that pod.
func (q *Queue) Has(p volume.Place) bool {
	n := q.table.find(p.ID)
	return n != 0 && q.table.pod(n) == p.Pod
}

// Next returns the earliest deadline under the given pressure factor. ok is false when all volumes
// that are left are postponed.
func (q *Queue) Next(factor float64) (deadline time.Time, ok bool) {
	first, deadline := q.next(factor)
	return deadline, first != 0
}

// TakeNext removes the volume with the earliest deadline under the given pressure factor, and
// returns what was known of it. Of several with the same deadline it takes the one that was
// unpublished first. ok is false when that of Next is.
func (q *Queue) TakeNext(factor float64) (next Asleep, ok bool) {
	first, _ := q.next(factor)
	if first == 0 {
		return Asleep{}, false
	}
	return q.take(first), true
}

func (q *Queue) next(factor float64) (first number, deadline time.Time) {
	for c, h := range q.classes {
		n := h.numbers[0]
		d := lifespan.Deadline(q.table.unpublished(n), c.keep, factor)
		if first == 0 || d.Before(deadline) || d.Equal(deadline) && q.table.before(n, first) {
			first, deadline = n, d
		}
	}
	return first, deadline
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

// order is a heap of entries, for the package container/heap. Each entry notes its place in it.
type order struct {
	table   *table
	numbers []number
	before  func(n, m number) bool
}

func (o *order) Len() int           { return len(o.numbers) }
func (o *order) Less(i, j int) bool { return o.before(o.numbers[i], o.numbers[j]) }

func (o *order) Swap(i, j int) {
	o.numbers[i], o.numbers[j] = o.numbers[j], o.numbers[i]
	o.table.entry(o.numbers[i]).place = uint32(i)
	o.table.entry(o.numbers[j]).place = uint32(j)
}

func (o *order) Push(x any) {
	n := x.(number)
	o.table.entry(n).place = uint32(len(o.numbers))
	o.numbers = append(o.numbers, n)
}

func (o *order) Pop() any {
	last := len(o.numbers) - 1
	n := o.numbers[last]
	o.numbers = o.numbers[:last]
	return n
}

// Postpone adds a volume that could not be deleted, as [Queue.Push] does. Until then it is not due,
// whatever its deadline is. tries is how often it could not be deleted; the queue keeps that until
// the volume is taken.
func (q *Queue) Postpone(r volume.Record, then time.Time, tries int) {
	q.postponed.add(&q.table, q.insert(r), then, tries)
}

// Resume ends the waits that are over at now. The next wait is over at the time that it returns; ok
// is false when no volume waits.
func (q *Queue) Resume(now time.Time) (next time.Time, ok bool) {
	for {
		n, then := q.postponed.first()
		if n == 0 || then.After(now) {
			return then, n != 0
		}
		heap.Pop(&q.postponed.order)
		// Its tries are kept.
		w := q.postponed.waits[n]
		w.over = true
		q.postponed.waits[n] = w
		q.enqueue(n)
	}
}

// Waiting returns how many volumes are postponed.
func (q *Queue) Waiting() int { return q.postponed.order.Len() }

// postponed orders the entries that wait by the end of their wait. The zero postponed is empty and
// ready to use.
type postponed struct {
	order  order
	origin time.Time       // what times are counted from
	waits  map[number]wait // of the entries in the heap, and of entries that were in it
}

type wait struct {
	until int64 // nanoseconds since the origin
	tries int32
	over  bool // the entry is no longer in the heap
}

func (p *postponed) add(t *table, n number, then time.Time, tries int) {
	if p.waits == nil {
		p.origin, p.waits = then, map[number]wait{}
		p.order = order{table: t, before: func(n, m number) bool { return p.waits[n].until < p.waits[m].until }}
	}
	p.waits[n] = wait{until: int64(then.Sub(p.origin)), tries: int32(tries)}
	heap.Push(&p.order, n)
}

// first returns the entry whose wait is over first, and when that is; 0 when none waits.
func (p *postponed) first() (number, time.Time) {
	if p.order.Len() == 0 {
		return 0, time.Time{}
	}
	n := p.order.numbers[0]
	return n, p.origin.Add(time.Duration(p.waits[n].until))
}

// remove forgets an entry, and reports whether it was in the heap.
func (p *postponed) remove(n number) bool {
	w, ok := p.waits[n]
	if !ok {
		return false
	}
	if !w.over {
		heap.Remove(&p.order, int(p.order.table.entry(n).place))
	}
	delete(p.waits, n)
	if len(p.waits) == 0 {
		*p = postponed{} // there may have been many
	}
	return !w.over
}
