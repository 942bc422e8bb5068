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
	entries []*entry
	before  func(a, b *entry) bool
	place   func(*entry) *int32
}

func (e *entry) classPlace() *int32  { return &e.inClass }
func (e *entry) tenantPlace() *int32 { return &e.inTenant }

func (o *order) push(e *entry)   { heap.Push(o, e) }
func (o *order) remove(e *entry) { heap.Remove(o, int(*o.place(e))) }

// first returns the first entry; nil if there is none.
func (o *order) first() *entry {
	if len(o.entries) == 0 {
		return nil
	}
	return o.entries[0]
}

func (o *order) Len() int           { return len(o.entries) }
func (o *order) Less(i, j int) bool { return o.before(o.entries[i], o.entries[j]) }

func (o *order) Swap(i, j int) {
	o.entries[i], o.entries[j] = o.entries[j], o.entries[i]
	*o.place(o.entries[i]) = int32(i)
	*o.place(o.entries[j]) = int32(j)
}

func (o *order) Push(x any) {
	e := x.(*entry)
	*o.place(e) = int32(len(o.entries))
	o.entries = append(o.entries, e)
}

func (o *order) Pop() any {
	last := len(o.entries) - 1
	e := o.entries[last]
	o.entries[last] = nil
	o.entries = o.entries[:last]
	if last == 0 {
		o.entries = nil // there may have been many
	}
	return e
}

// tier says which of the volumes go before others when room is needed.
type tier uint8

const (
	released tier = iota
	// Of each outcome the archived ones go first.
	succeededArchived
	succeeded
	// stopped: the pod was stopped before it had succeeded or failed.
	stoppedArchived
	stopped
	otherArchived
	other
	pinned
	// interrupted: a crash interrupted the deletion, which goes on at once.
	interrupted
)

// ages reports whether its volumes go by their lifespan: nothing was decided about them.
func (t tier) ages() bool { return firstToAge <= t && t <= other }

// firstToAge is the first tier that ages.
const firstToAge = succeededArchived

// class is what volumes have in common that go in an order that no pressure factor changes: those of
// one lifespan in the order in which they were unpublished, those with a hold in the order in which
// their holds end.
type class struct {
	tier     tier
	lifespan time.Duration // only of a tier that ages
}

// class is only for a volume that is retained or being deleted.
func (e *entry) class() class {
	f := &e.fate.value
	hold := e.hold()
	switch {
	case f.phase == volume.Deleting:
		return class{tier: interrupted}
	case hold == volume.Released:
		return class{tier: released}
	case hold == volume.Pinned:
		return class{tier: pinned}
	}
	of := other
	switch f.outcome {
	case volume.Succeeded:
		of = succeeded
	case volume.Stopped:
		of = stopped
	}
	if f.archivedUntil > 0 && !f.copyOver {
		of-- // the tier of the archived ones
	}
	return class{of, f.lifespan}
}

// end is when an entry goes without pressure, on the clock of since.
func (e *entry) end() int64 {
	f := &e.fate.value
	if f.phase == volume.Deleting {
		return e.since
	}
	keep := volume.Record{Lifespan: f.lifespan}
	if e.rare != nil {
		keep.Hold = volume.Hold{Kind: e.rare.held, For: e.rare.after}
	}
	return after(e.since, keep.Keep())
}

// after returns the time that is d later, but no later than the clock can tell.
func after(since int64, d time.Duration) int64 {
	if since > 0 && int64(d) > math.MaxInt64-since {
		return math.MaxInt64
	}
	return since + int64(d)
}

// endsBefore orders by the end, equals by the time of unpublishing.
func endsBefore(a, b *entry) bool {
	if at, other := a.end(), b.end(); at != other {
		return at < other
	}
	return before(a, b)
}

// classes has a heap for each class. There are few: pods get their lifespans rounded.
type classes map[class]*order

func (c classes) push(e *entry) {
	of := e.class()
	h := c[of]
	if h == nil {
		h = &order{place: (*entry).classPlace, before: before}
		if of.tier == released || of.tier == pinned {
			h.before = endsBefore
		}
		c[of] = h
	}
	h.push(e)
}

func (c classes) remove(e *entry) {
	of := e.class()
	h := c[of]
	h.remove(e)
	if h.Len() == 0 {
		delete(c, of)
	}
}

// head returns the first entry of a tier that has one class; nil if there is none.
func (c classes) head(of tier) *entry {
	if h := c[class{tier: of}]; h != nil {
		return h.entries[0]
	}
	return nil
}
