package retained

import (
	"container/heap"
	"math"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// order is a heap of entries, for the package container/heap. Each entry notes its place in it, which
// makes it cheap to remove.
type order struct {
	numbers []number
	before  func(n, m number) bool
	place   func(n number) *uint32
}

func (o *order) Len() int           { return len(o.numbers) }
func (o *order) Less(i, j int) bool { return o.before(o.numbers[i], o.numbers[j]) }

func (o *order) Swap(i, j int) {
	o.numbers[i], o.numbers[j] = o.numbers[j], o.numbers[i]
	*o.place(o.numbers[i]) = uint32(i)
	*o.place(o.numbers[j]) = uint32(j)
}

func (o *order) Push(x any) { o.append(x.(number)) }

// append adds an entry at the end. In a heap that is right for one that comes after all others.
func (o *order) append(n number) {
	*o.place(n) = uint32(len(o.numbers))
	o.numbers = append(o.numbers, n)
}

// push adds an entry. last: it comes after all others.
func (o *order) push(n number, last bool) {
	if last {
		o.append(n)
	} else {
		heap.Push(o, n)
	}
}

func (o *order) Pop() any {
	last := len(o.numbers) - 1
	n := o.numbers[last]
	o.numbers = o.numbers[:last]
	return n
}

// tier says which of the volumes go before others when room is needed.
type tier uint8

const (
	released tier = iota
	succeeded
	// stopped: the pod was told to go before it had succeeded or failed.
	stopped
	other
	pinned
	// interrupted: a crash interrupted the deletion, which goes on at once.
	interrupted
)

// ages reports whether its volumes go by their lifespan: nothing was decided about them.
func (t tier) ages() bool { return succeeded <= t && t <= other }

// class is what volumes have in common that go in an order that no pressure factor changes: those of
// one lifespan in the order in which they were unpublished, those with a hold in the order in which
// their holds end.
type class struct {
	tier     tier
	lifespan time.Duration // only of a tier that ages
}

func (t *table) class(n number) class {
	f := t.fate(n)
	hold := t.holds.all[n].kind
	switch {
	case f.phase == volume.Deleting:
		return class{tier: interrupted}
	case hold == volume.Released:
		return class{tier: released}
	case hold == volume.Pinned:
		return class{tier: pinned}
	case f.outcome == volume.Succeeded:
		return class{succeeded, f.lifespan}
	case f.outcome == volume.Stopped:
		return class{stopped, f.lifespan}
	}
	return class{other, f.lifespan}
}

// end is when an entry goes without pressure, on the clock of since.
func (t *table) end(n number) int64 {
	since, f := t.entry(n).since, t.fate(n)
	if f.phase == volume.Deleting {
		return since
	}
	return after(since, volume.Record{Lifespan: f.lifespan, Hold: t.holds.of(n)}.Keep())
}

// after returns the time that is d later, but no later than the clock can tell.
func after(since int64, d time.Duration) int64 {
	if since > 0 && int64(d) > math.MaxInt64-since {
		return math.MaxInt64
	}
	return since + int64(d)
}

// endsBefore orders by the end, equals by the time of unpublishing.
func (t *table) endsBefore(n, m number) bool {
	if a, b := t.end(n), t.end(m); a != b {
		return a < b
	}
	return t.before(n, m)
}

func (t *table) place(n number) *uint32 { return &t.entry(n).place }

// classes has a heap for each class. There are few: pods get their lifespans rounded.
type classes map[class]*order

// push adds an entry. newest: no other one was unpublished later.
func (c *classes) push(t *table, n number, newest bool) {
	if *c == nil {
		*c = classes{}
	}
	of := t.class(n)
	byEnd := of.tier == released || of.tier == pinned
	h := (*c)[of]
	if h == nil {
		h = &order{place: t.place, before: t.before}
		if byEnd {
			h.before = t.endsBefore
		}
		(*c)[of] = h
	}
	h.push(n, newest && !byEnd)
}

func (c classes) remove(t *table, n number) {
	of := t.class(n)
	h := c[of]
	heap.Remove(h, int(t.entry(n).place))
	if h.Len() == 0 {
		delete(c, of)
	}
}

// head returns the first entry of a tier that has one class; 0 if there is none.
func (c classes) head(of tier) number {
	if h := c[class{tier: of}]; h != nil {
		return h.numbers[0]
	}
	return 0
}
