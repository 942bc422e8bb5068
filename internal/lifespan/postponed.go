package lifespan

import (
	"container/heap"
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// A volume that could not be deleted is postponed: it stays in the queue, but is
// not due before its wait is over, whatever its deadline is. On a disk that fails
// all volumes may come to that, so that each takes little memory.

// Postpone adds a volume as [Queue.Push] does, which has no deadline before then.
// tries is how often it could not be deleted; it is kept until the volume is taken.
func (q *Queue) Postpone(r volume.Record, then time.Time, tries int) {
	q.Take(r.ID)
	n := q.table.insert(&r)
	q.addSize(n)
	q.postponed.add(&q.table, n, then, tries)
}

// Resume gives those their deadlines back whose wait is over. The next one's is over
// at the time that it returns; ok is false when none is left.
func (q *Queue) Resume(now time.Time) (next time.Time, ok bool) {
	for q.postponed.Len() > 0 {
		n := q.postponed.numbers[0]
		if then := q.postponed.until(n); then.After(now) {
			return then, true
		}
		heap.Pop(&q.postponed)
		q.line(n)
	}
	return time.Time{}, false
}

// Waiting returns how many volumes are postponed.
func (q *Queue) Waiting() int { return q.postponed.Len() }

// postponed is a heap of entries, those first whose wait is over first. The zero
// postponed is empty and ready to use.
type postponed struct {
	table *table
	// origin is what times are counted from.
	origin  time.Time
	numbers []number
	// waits are those of the heap and of entries that were in it.
	waits map[number]wait
}

type wait struct {
	// until is in nanoseconds from the origin.
	until int64
	tries int32
	// over: the entry is not in the heap any more.
	over bool
}

func (p *postponed) add(t *table, n number, then time.Time, tries int) {
	if p.waits == nil {
		p.table, p.origin, p.waits = t, then, map[number]wait{}
	}
	p.waits[n] = wait{until: int64(then.Sub(p.origin)), tries: int32(tries)}
	heap.Push(p, n)
}

func (p *postponed) until(n number) time.Time {
	return p.origin.Add(time.Duration(p.waits[n].until))
}

func (p *postponed) tries(n number) int { return int(p.waits[n].tries) }

// remove forgets an entry, and tells whether it was in the heap.
func (p *postponed) remove(n number) bool {
	w, ok := p.waits[n]
	if !ok {
		return false
	}
	if !w.over {
		heap.Remove(p, int(p.table.entry(n).place))
	}
	delete(p.waits, n)
	if len(p.waits) == 0 {
		*p = postponed{} // there may have been many
	}
	return !w.over
}

func (p *postponed) Len() int { return len(p.numbers) }

func (p *postponed) Less(i, j int) bool {
	return p.waits[p.numbers[i]].until < p.waits[p.numbers[j]].until
}

func (p *postponed) Swap(i, j int) {
	p.numbers[i], p.numbers[j] = p.numbers[j], p.numbers[i]
	p.table.entry(p.numbers[i]).place = uint32(i)
	p.table.entry(p.numbers[j]).place = uint32(j)
}

func (p *postponed) Push(x any) {
	n := x.(number)
	p.table.entry(n).place = uint32(len(p.numbers))
	p.numbers = append(p.numbers, n)
}

func (p *postponed) Pop() any {
	last := len(p.numbers) - 1
	n := p.numbers[last]
	p.numbers = p.numbers[:last]
	w := p.waits[n]
	w.over = true
	p.waits[n] = w
	return n
}
