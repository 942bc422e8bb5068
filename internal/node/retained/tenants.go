package retained

import (
	"container/heap"
	"math"

	"github.com/katbox/katbox/internal/model/volume"
)

// maxTenants is how many namespaces are told apart. All further ones count as one. A namespace takes
// some 300 bytes.
const maxTenants = 1 << 16

// rechecked is how many namespaces [Queue.Recheck] takes at a time.
const rechecked = 500

// tenants knows what each namespace retains, and which of its volumes goes first. It takes some 12
// bytes for each volume. The zero tenants is empty and ready to use.
type tenants struct {
	table  *table
	named  map[string]uint32 // their places in all and sums
	all    []tenant
	sums   []sum // beside all, because they are searched
	free   []uint32
	total  volume.Size
	shares [][]share // of the entries, by number
	// suspects may retain more than they may. next is the one to be looked at next by Recheck.
	suspects []uint32
	next     uint32
	// before and placed are those of all heaps.
	before func(n, m number) bool
	placed func(n number) *uint32
}

// tenant is one namespace.
type tenant struct {
	namespace string
	// heaps has the volumes of the tiers up to other, the oldest first. volumes counts the pinned ones, and
	// those that do not go, too.
	heaps   [other + 1]order
	volumes int
	suspect bool
}

// sum is what a namespace retains, as far as it was measured.
type sum struct {
	size volume.Size
	// oldest is when the oldest volume was unpublished that is neither released nor pinned; none if
	// there is none.
	oldest int64
}

// none is later than all times that matter.
const none = math.MaxInt64

// share is what the tenants note of an entry.
type share struct {
	tenant uint32 // from 1 on; 0 for an entry that no tenant has
	place  uint32 // in its heap
}

func (x *tenants) share(n number) *share { return &x.shares[(n-1)/chunkLength][(n-1)%chunkLength] }

func (x *tenants) place(n number) *uint32 { return &x.share(n).place }

// enter adds an entry that may go. newest: no other one was unpublished later.
func (x *tenants) enter(t *table, n number, newest bool) {
	of := t.class(n).tier
	if of == interrupted {
		return
	}
	at := x.join(t, n)
	if of != pinned {
		x.all[at].heaps[of].push(n, newest)
	}
	if of.ages() {
		x.sums[at].oldest = min(x.sums[at].oldest, t.entry(n).since)
	}
}

// join counts an entry, which need not be one that may go. It returns the place of its namespace.
func (x *tenants) join(t *table, n number) (at uint32) {
	if x.table == nil {
		x.table, x.before, x.placed = t, t.before, x.place
	}
	for int(n) > len(x.shares)*chunkLength {
		x.shares = append(x.shares, make([]share, chunkLength))
	}
	at = x.at(t.namespace(n))
	x.share(n).tenant = at + 1
	x.all[at].volumes++
	x.add(n)
	return at
}

// at returns the place of a namespace.
func (x *tenants) at(namespace string) uint32 {
	if at, ok := x.named[namespace]; ok {
		return at
	}
	if len(x.named) >= maxTenants && namespace != volume.OtherNamespaces {
		return x.at(volume.OtherNamespaces)
	}
	if x.named == nil {
		x.named = map[string]uint32{}
	}
	at := uint32(len(x.all))
	if last := len(x.free) - 1; last >= 0 {
		at, x.free = x.free[last], x.free[:last]
	} else {
		x.all, x.sums = append(x.all, tenant{}), append(x.sums, sum{})
	}
	x.sums[at] = sum{oldest: none}
	x.all[at] = tenant{namespace: namespace, suspect: x.all[at].suspect}
	for i := range x.all[at].heaps {
		x.all[at].heaps[i] = order{before: x.before, place: x.placed}
	}
	x.named[namespace] = at
	return at
}

// leave takes an entry out, if it was added.
func (x *tenants) leave(n number) {
	if !x.has(n) {
		return
	}
	at := x.share(n).tenant - 1
	if of := x.table.class(n).tier; of != pinned {
		t := &x.all[at]
		heap.Remove(&t.heaps[of], int(*x.place(n)))
		x.sums[at].oldest = t.oldest(x.table)
	}
	x.part(n)
}

func (x *tenants) has(n number) bool {
	return int(n) <= len(x.shares)*chunkLength && x.share(n).tenant != 0
}

// part undoes join, if that was done.
func (x *tenants) part(n number) {
	if !x.has(n) {
		return
	}
	at := x.share(n).tenant - 1
	t := &x.all[at]
	if s := x.table.entry(n).size; s.known() {
		x.sums[at].size = x.sums[at].size.Sub(s.size())
		x.total = x.total.Sub(s.size())
	}
	*x.share(n) = share{}
	if t.volumes--; t.volumes == 0 {
		delete(x.named, t.namespace)
		*t = tenant{suspect: t.suspect}
		x.free = append(x.free, at)
	}
}

// add adds the size of an entry, if it is known.
func (x *tenants) add(n number) {
	s := x.table.entry(n).size
	at := x.share(n).tenant - 1
	if !s.known() {
		return
	}
	x.sums[at].size = x.sums[at].size.Add(s.size())
	x.total = x.total.Add(s.size())
	x.doubt(at)
}

// measured notes that the size of an entry became known.
func (x *tenants) measured(n number) {
	if x.has(n) {
		x.add(n)
	}
}

func (t *tenant) oldest(in *table) int64 {
	oldest := int64(none)
	for _, h := range t.heaps[succeeded:] {
		if h.Len() > 0 {
			oldest = min(oldest, in.entry(h.numbers[0]).since)
		}
	}
	return oldest
}

// first returns the first in order of the volumes that were unpublished at born or before; 0 if there
// is none.
func (t *tenant) first(in *table, born int64) number {
	for of, h := range t.heaps {
		if h.Len() > 0 && (tier(of) == released || in.entry(h.numbers[0]).since <= born) {
			return h.numbers[0]
		}
	}
	return 0
}

// ofHeaviest returns the first in order of the namespace that retains most, if that is more than an
// average one does; else 0. Namespaces count that have a volume which was unpublished at born or
// before.
func (x *tenants) ofHeaviest(born int64, scarcer volume.Reason) number {
	heaviest, most := -1, int64(0)
	for at := range x.sums {
		s := &x.sums[at]
		amount := s.size.Bytes
		if scarcer == volume.ForInodes {
			amount = s.size.Inodes
		}
		if amount > most && s.oldest <= born {
			heaviest, most = at, amount
		}
	}
	total := x.total.Bytes
	if scarcer == volume.ForInodes {
		total = x.total.Inodes
	}
	if heaviest < 0 || float64(most)*float64(len(x.named)) <= float64(total) {
		return 0
	}
	return x.all[heaviest].first(x.table, born)
}

// doubt has a namespace looked at by the next surplus.
func (x *tenants) doubt(at uint32) {
	if !x.all[at].suspect {
		x.all[at].suspect = true
		x.suspects = append(x.suspects, at)
	}
}

// surplus returns the first in order of a namespace that retains more than it may, and has a volume
// that was unpublished at born or before, or a released one; 0 if there is none among the suspects.
func (x *tenants) surplus(may func(namespace string) volume.Size, born int64) number {
	for len(x.suspects) > 0 {
		last := len(x.suspects) - 1
		at := x.suspects[last]
		t := &x.all[at]
		if x.exceeds(at, may) {
			if n := t.first(x.table, born); n != 0 {
				return n
			}
		}
		t.suspect = false
		x.suspects = x.suspects[:last]
	}
	x.suspects = nil // a start may have made it long
	return 0
}

// exceeds is false for volumes of several namespaces, or of an unknown one.
func (x *tenants) exceeds(at uint32, may func(namespace string) volume.Size) bool {
	t := &x.all[at]
	if t.namespace == "" || t.namespace == volume.OtherNamespaces {
		return false
	}
	limit, is := may(t.namespace), x.sums[at].size
	return limit.Bytes > 0 && is.Bytes > limit.Bytes || limit.Inodes > 0 && is.Inodes > limit.Inodes
}

// recheck has the next namespaces looked at.
func (x *tenants) recheck() {
	for range min(rechecked, len(x.all)) {
		if int(x.next) >= len(x.all) {
			x.next = 0
		}
		x.doubt(x.next)
		x.next++
	}
}
