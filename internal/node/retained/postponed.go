package retained

import (
	"container/heap"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// Postpone adds a volume that could not be deleted, as [Queue.Push] does. Until then it is not due,
// whatever its deadline is. tries is how often it could not be deleted; the queue keeps that until
// the volume is taken.
func (q *Queue) Postpone(r volume.Record, then time.Time, tries int) {
	q.postponed.add(&q.table, q.insert(r), then, tries)
}

// Keep adds a volume, as [Queue.Push] does, that does not go as long as it is in the queue. It counts as one
// that its namespace retains.
func (q *Queue) Keep(r volume.Record) {
	n := q.insert(r)
	if q.kept == nil {
		q.kept = map[number]struct{}{}
	}
	q.kept[n] = struct{}{}
	if q.tells() {
		q.tenants.join(&q.table, n)
	}
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
		q.enqueue(n, false)
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
		p.order = order{place: t.place, before: func(n, m number) bool { return p.waits[n].until < p.waits[m].until }}
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
		heap.Remove(&p.order, int(*p.order.place(n)))
	}
	delete(p.waits, n)
	if len(p.waits) == 0 {
		*p = postponed{} // there may have been many
	}
	return !w.over
}
