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
// pressure factor is. So there is one heap for each lifespan, a change of the factor reorders
// nothing, and what is due next is one of the heads. There are as many heads as there were
// different settings of the lifespan, usually one.
type Queue struct {
	// Grew, if set, is called whenever the queue takes more memory, with how many bytes it takes.
	// It never takes less again.
	Grew func(bytes int)

	table   table
	classes map[class]*order
	// unmeasured are the entries without a size. bytes is the sum of the others' sizes.
	unmeasured []number
	bytes      int64
	// postponed are those that could not be deleted.
	postponed postponed
}

// class is what volumes have in common that are due in the order in which they were unpublished.
type class struct {
	lifespan time.Duration
	deleting bool
}

func (g group) class() class {
	if g.phase == volume.Deleting {
		return class{deleting: true}
	}
	return class{lifespan: g.lifespan}
}

// Push adds a volume, in place of an older record of the same ID. A record in phase
// [volume.Deleting], whose deletion a crash interrupted, is due at once. The queue does not keep
// the targets of a record: a retained volume has none.
//
// The Unpublished times of all records must carry a monotonic clock reading, or none of them:
// times of both kinds have no common order when the wall clock was stepped.
func (q *Queue) Push(r volume.Record) { q.enqueue(q.insert(r)) }

func (q *Queue) insert(r volume.Record) number {
	q.Take(r.ID)
	before := q.table.memory()
	n := q.table.insert(&r)
	if now := q.table.memory(); now > before && q.Grew != nil {
		q.Grew(now)
	}
	q.addSize(n)
	return n
}

// enqueue puts an entry into the heap of its class.
func (q *Queue) enqueue(n number) {
	if q.classes == nil {
		q.classes = make(map[class]*order)
	}
	c := q.table.group(n).class()
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
	// Size is what the volume takes. It is zero if that is not known: a volume that was measured
	// has at least the inode of its data directory.
	Size volume.Size
	// Tries is how often the volume could not be deleted.
	Tries int
}

// Take removes a volume and returns what was known of it. It costs O(log n).
func (q *Queue) Take(id volume.ID) (Asleep, bool) {
	n := q.table.find(id)
	if n == 0 {
		return Asleep{}, false
	}
	return q.take(n), true
}

func (q *Queue) take(n number) Asleep {
	a := Asleep{Record: q.table.record(n), Tries: int(q.postponed.waits[n].tries)}
	if s := q.table.entry(n).size; s.known() {
		a.Size = s.size()
	}
	q.dropSize(n)
	if !q.postponed.remove(n) {
		c := q.table.group(n).class()
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
	return n != 0 && q.table.volumePlace(n) == p
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
		d := lifespan.Deadline(q.table.unpublished(n), c.lifespan, factor)
		if first == 0 || d.Before(deadline) || d.Equal(deadline) && q.table.before(n, first) {
			first, deadline = n, d
		}
	}
	return first, deadline
}

// Len returns the number of volumes in the queue.
func (q *Queue) Len() int { return q.table.length }
