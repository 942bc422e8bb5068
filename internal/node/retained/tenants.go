package retained

import (
	"math"

	"github.com/katbox/katbox/internal/model/volume"
)

// rechecked is how many namespaces [Index.Recheck] takes at a time.
const rechecked = 500

// tenants knows what each namespace retains, and which of its volumes goes first. The zero tenants is empty
// and ready to use.
type tenants struct {
	all   []*namespace // those with listed volumes
	total volume.Size
	// suspects may retain more than they may, where limited says that any namespace may not retain all. next is the one to
	// be looked at next by Recheck.
	limited  bool
	suspects []*namespace
	next     int
}

// namespace is what is known of the retained volumes of one.
type namespace struct {
	name  string
	lists []*list
	// volumes are listed, with this size as far as they were measured. at is the place in all while there are any.
	volumes, at int
	size        volume.Size
	// oldest is when the oldest volume was unpublished that is at rest and neither released nor pinned; none if there
	// is none.
	oldest  int64
	suspect bool
	// heaps has the volumes at rest of the tiers up to other, the oldest first.
	heaps [other + 1]order
}

// none is later than all times that matter.
const none = math.MaxInt64

func newNamespace(name string) *namespace {
	n := &namespace{name: name, oldest: none}
	for i := range n.heaps {
		n.heaps[i] = order{place: (*entry).tenantPlace, before: before}
	}
	return n
}

func (e *entry) namespace() *namespace { return e.group.value.list.in }

// join counts a volume that is listed, part undoes that.
func (t *tenants) join(e *entry) {
	n := e.namespace()
	if n.volumes++; n.volumes == 1 {
		n.at = len(t.all)
		t.all = append(t.all, n)
	}
	t.add(e)
}

func (t *tenants) part(e *entry) {
	n := e.namespace()
	n.size, t.total = n.size.Sub(e.size()), t.total.Sub(e.size())
	if n.volumes--; n.volumes > 0 {
		return
	}
	last := len(t.all) - 1
	t.all[last].at = n.at
	t.all[n.at] = t.all[last]
	t.all[last] = nil
	t.all = t.all[:last]
}

// add counts the size of a volume, as far as it is known.
func (t *tenants) add(e *entry) {
	if e.inodes == unmeasured {
		return
	}
	n := e.namespace()
	n.size, t.total = n.size.Add(e.size()), t.total.Add(e.size())
	t.doubt(n)
}

// enter adds a volume that may go, leave takes it out.
func (t *tenants) enter(e *entry) {
	if of := e.class().tier; of <= other {
		n := e.namespace()
		n.heaps[of].push(e)
		n.age()
	}
}

func (t *tenants) leave(e *entry) {
	if of := e.class().tier; of <= other {
		n := e.namespace()
		n.heaps[of].remove(e)
		n.age()
	}
}

func (n *namespace) age() {
	n.oldest = none
	for of := firstToAge; of <= other; of++ {
		if first := n.heaps[of].first(); first != nil {
			n.oldest = min(n.oldest, first.since)
		}
	}
}

// first returns the first in order of the volumes that were unpublished at born or before; nil if there
// is none.
func (n *namespace) first(born int64) *entry {
	for of := range n.heaps {
		if first := n.heaps[of].first(); first != nil && (tier(of) == released || first.since <= born) {
			return first
		}
	}
	return nil
}

// ofHeaviest returns the first in order of the namespace that retains most, if that is more than an
// average one does; else nil. Namespaces count that have a volume which was unpublished at born or
// before.
func (t *tenants) ofHeaviest(born int64, scarcer volume.Reason) *entry {
	amount := func(s volume.Size) int64 {
		if scarcer == volume.ForInodes {
			return s.Inodes
		}
		return s.Bytes
	}
	var heaviest *namespace
	most := int64(0)
	for _, n := range t.all {
		if is := amount(n.size); is > most && n.oldest <= born {
			heaviest, most = n, is
		}
	}
	if heaviest == nil || float64(most)*float64(len(t.all)) <= float64(amount(t.total)) {
		return nil
	}
	return heaviest.first(born)
}

// doubt lets the next surplus look at a namespace.
func (t *tenants) doubt(n *namespace) {
	if t.limited && !n.suspect {
		n.suspect = true
		t.suspects = append(t.suspects, n)
	}
}

// surplus returns the first in order of a namespace that retains more than it may, and has a volume
// that was unpublished at born or before, or a released one; nil if there is none among the suspects.
func (t *tenants) surplus(may func(namespace string) volume.Size, born int64) *entry {
	for len(t.suspects) > 0 {
		last := len(t.suspects) - 1
		n := t.suspects[last]
		if n.exceeds(may) {
			if e := n.first(born); e != nil {
				return e
			}
		}
		n.suspect = false
		t.suspects[last] = nil
		t.suspects = t.suspects[:last]
	}
	t.suspects = nil // a start may have made it long
	return nil
}

// exceeds is false for volumes of an unknown namespace.
func (n *namespace) exceeds(may func(namespace string) volume.Size) bool {
	if n.name == "" {
		return false
	}
	limit := may(n.name)
	return limit.Bytes > 0 && n.size.Bytes > limit.Bytes || limit.Inodes > 0 && n.size.Inodes > limit.Inodes
}

// recheck lets the next surplus look at some further namespaces.
func (t *tenants) recheck() {
	for range min(rechecked, len(t.all)) {
		if t.next >= len(t.all) {
			t.next = 0
		}
		t.doubt(t.all[t.next])
		t.next++
	}
}
