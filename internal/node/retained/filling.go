package retained

import (
	"cmp"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/model/volume"
)

// Filling makes a queue of many volumes that come at once and in any order, as at a start. It sorts
// them once, and takes half the time of a [Queue.Push] for each.
type Filling struct{ queue *Queue }

// Fill begins with an empty queue, which is not to be used before [Filling.End].
func Fill(empty *Queue) Filling { return Filling{empty} }

// Push adds a volume; see [Queue.Push]. It keeps nothing of the record.
func (f Filling) Push(r *volume.Record) {
	t := &f.queue.table
	if older := t.find(r.ID); older != 0 {
		t.remove(older)
	}
	f.queue.tabulate(r)
}

// End returns the queue.
func (f Filling) End() *Queue {
	q := f.queue
	inOrder := q.table.inOrder()
	for _, e := range inOrder { // so that each one comes at the end of what it is added to
		q.enter(e.number)
		q.enqueue(e.number, true)
	}
	return q
}

// dated is an entry with the time that it is sorted by.
type dated struct {
	since int64
	number
}

// inOrder returns all entries, sorted as before says.
func (t *table) inOrder() []dated {
	all := make([]dated, 0, t.length)
	for n := range t.entries.inUse() {
		all = append(all, dated{t.entry(n).since, n})
	}
	slices.SortFunc(all, func(a, b dated) int {
		if a.since != b.since {
			return cmp.Compare(a.since, b.since)
		}
		return strings.Compare(string(t.id(a.number)), string(t.id(b.number)))
	})
	return all
}
