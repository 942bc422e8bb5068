package lifespan

import (
	"container/heap"
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// Queue holds the retained volumes and knows which one is due next. The zero
// Queue is empty and ready to use; it has to be closed, because most of it is in
// memory that the garbage collector does not free. It is not safe for concurrent
// use.
//
// Within one lifespan the order of deadlines is the order of unpublishing,
// whatever the pressure factor. So there is one heap for each distinct
// lifespan, a change of the factor reorders nothing, and asking what is due
// next looks at the heads only: there are as many as there were different
// settings of the lifespan, usually one.
type Queue struct {
	table   table
	classes map[class]*order
	// unmeasured are the entries without a size, bytes is the sum of the others'.
	unmeasured []number
	bytes      int64
	// postponed are those that could not be deleted.
	postponed postponed
}

// class is what volumes have in common whose deadlines are ordered by the time
// they were unpublished.
type class struct {
	lifespan time.Duration
	deleting bool
}

func (l lot) class() class {
	if l.phase == volume.Deleting {
		return class{deleting: true}
	}
	return class{lifespan: l.lifespan}
}

// Push adds a volume, in place of an older record of the same ID. A record in
// phase [volume.Deleting], whose deletion a crash interrupted, is due at once. The
// targets of a record are not kept: a retained volume has none.
//
// The Unpublished times of all records must carry a monotonic clock reading,
// or none of them: times of both kinds have no common order when the wall
// clock was stepped.
func (q *Queue) Push(r volume.Record) {
	q.Take(r.ID)
	n := q.table.insert(&r)
	q.line(n)
	q.addSize(n)
}

// line puts an entry among those of its class.
func (q *Queue) line(n number) {
	if q.classes == nil {
		q.classes = make(map[class]*order)
	}
	c := q.table.lot(n).class()
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
	// Size is the space that it takes, if it was measured.
	Size     volume.Size
	Measured bool
	// Tries is how often it could not be deleted.
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
	a := Asleep{Record: q.table.record(n), Tries: q.postponed.tries(n)}
	if s := q.table.entry(n).size; s.known() {
		// Its data directory is an inode: without one it could not be measured.
		a.Size, a.Measured = s.size(), s.size().Inodes > 0
	}
	q.dropSize(n)
	if !q.postponed.remove(n) {
		c := q.table.lot(n).class()
		h := q.classes[c]
		heap.Remove(h, int(q.table.entry(n).place))
		if h.Len() == 0 {
			delete(q.classes, c)
		}
	}
	q.table.remove(n)
	return a
}

// Has tells whether the volume is in the queue, as one of that pod.
func (q *Queue) Has(p volume.Place) bool {
	n := q.table.find(p.ID)
	if n == 0 {
		return false
	}
	_, known := q.table.names(n)
	return known == p.Pod
}

// Next returns the earliest deadline under the given pressure factor. ok is false
// when nothing but postponed volumes is left.
func (q *Queue) Next(factor float64) (deadline time.Time, ok bool) {
	first, deadline := q.next(factor)
	return deadline, first != 0
}

// TakeNext removes the volume with the earliest deadline under the given pressure
// factor, and returns what was known of it. Of several with the same deadline it is
// the one that was unpublished first. ok is false when Next's is.
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
		d := Deadline(q.table.unpublished(n), c.lifespan, factor)
		if first == 0 || d.Before(deadline) || d.Equal(deadline) && q.table.before(n, first) {
			first, deadline = n, d
		}
	}
	return first, deadline
}

// Len returns the number of volumes in the queue.
func (q *Queue) Len() int { return q.table.length }

// Close frees the queue's memory. The queue is empty then.
func (q *Queue) Close() error {
	err := q.table.close()
	*q = Queue{}
	return err
}
