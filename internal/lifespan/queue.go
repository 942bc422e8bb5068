package lifespan

import (
	"container/heap"
	"iter"
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// Queue holds the retained volumes and knows which one is due next. The zero
// Queue is empty and ready to use. It is not safe for concurrent use.
//
// Within one lifespan the order of deadlines is the order of unpublishing,
// whatever the pressure factor. So there is one heap for each distinct
// lifespan, a change of the factor reorders nothing, and asking what is due
// next looks at the heads only: there are as many as there were different
// settings of the lifespan, usually one.
type Queue struct {
	entries map[volume.ID]*entry
	classes map[class]*byUnpublished
	// unmeasured are the entries without a size, bytes is the sum of the others'.
	unmeasured []*entry
	bytes      int64
}

// class is what volumes have in common whose deadlines are ordered by the time
// they were unpublished.
type class struct {
	lifespan time.Duration
	deleting bool
}

func classOf(r *volume.Record) class {
	if r.Phase == volume.Deleting {
		return class{deleting: true}
	}
	return class{lifespan: r.Lifespan}
}

// entry is all that the queue keeps of a volume. There may be a million, so
// everything that can be derived from the record is.
type entry struct {
	record volume.Record
	// index is the entry's place in its heap, which makes removal by ID cheap.
	index int
	size  size
}

// Push adds a volume, in place of an older record of the same ID. A record in
// phase [volume.Deleting], whose deletion a crash interrupted, is due at once.
//
// The Unpublished times of all records must carry a monotonic clock reading,
// or none of them: times of both kinds have no common order when the wall
// clock was stepped.
func (q *Queue) Push(r volume.Record) {
	q.Take(r.ID)
	if q.entries == nil {
		q.entries = make(map[volume.ID]*entry)
		q.classes = make(map[class]*byUnpublished)
	}
	c := classOf(&r)
	h := q.classes[c]
	if h == nil {
		h = new(byUnpublished)
		q.classes[c] = h
	}
	e := &entry{record: r}
	q.entries[r.ID] = e
	heap.Push(h, e)
	q.addSize(e)
}

// Take removes a volume and returns its record. It costs O(log n).
func (q *Queue) Take(id volume.ID) (volume.Record, bool) {
	e, ok := q.entries[id]
	if !ok {
		return volume.Record{}, false
	}
	delete(q.entries, id)
	q.dropSize(e)
	c := classOf(&e.record)
	h := q.classes[c]
	heap.Remove(h, e.index)
	if h.Len() == 0 {
		delete(q.classes, c)
	}
	return e.record, true
}

// Get returns the volume's record, which stays in the queue.
func (q *Queue) Get(id volume.ID) (volume.Record, bool) {
	e, ok := q.entries[id]
	if !ok {
		return volume.Record{}, false
	}
	return e.record, true
}

// Next returns the volume with the earliest deadline under the given pressure
// factor, and that deadline. Of several with the same deadline it is the one
// that was unpublished first. The volume stays in the queue; ok is false when
// the queue is empty.
func (q *Queue) Next(factor float64) (rec volume.Record, deadline time.Time, ok bool) {
	var first *entry
	for c, h := range q.classes {
		e := (*h)[0]
		d := Deadline(e.record.Unpublished, c.lifespan, factor)
		if first == nil || d.Before(deadline) || d.Equal(deadline) && e.before(first) {
			first, deadline = e, d
		}
	}
	if first == nil {
		return volume.Record{}, time.Time{}, false
	}
	return first.record, deadline, true
}

// Len returns the number of volumes in the queue.
func (q *Queue) Len() int { return len(q.entries) }

// All returns the records of all volumes in the queue, in no order. The queue
// may be changed on the way: a volume taken out before it was reached is not
// seen, one that is added may be.
func (q *Queue) All() iter.Seq[volume.Record] {
	return func(yield func(volume.Record) bool) {
		for _, e := range q.entries {
			if !yield(e.record) {
				return
			}
		}
	}
}

// before orders by the time of unpublishing. The ID decides among equals, so
// that the order never depends on chance.
func (e *entry) before(f *entry) bool {
	if !e.record.Unpublished.Equal(f.record.Unpublished) {
		return e.record.Unpublished.Before(f.record.Unpublished)
	}
	return e.record.ID < f.record.ID
}

// byUnpublished is a heap of entries, the oldest first.
type byUnpublished []*entry

func (h byUnpublished) Len() int           { return len(h) }
func (h byUnpublished) Less(i, j int) bool { return h[i].before(h[j]) }

func (h byUnpublished) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index = i
	h[j].index = j
}

func (h *byUnpublished) Push(x any) {
	e := x.(*entry)
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *byUnpublished) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	// Without this the heap's array would keep the record alive.
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
