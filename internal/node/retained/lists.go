package retained

import (
	"bytes"
	"container/heap"
	"slices"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// list has the listed volumes of one space, by their keys.
type list struct {
	sorted
	space space
	in    *namespace
	users int // the volumes of the space that are retained or being deleted, listed or not
}

// listOf returns the list of a space, dropList forgets it with its last user.
func (x *Index) listOf(s space) *list {
	l := x.lists[s]
	if l != nil {
		return l
	}
	in := x.namespaces[s.namespace]
	if in == nil {
		in = newNamespace(s.namespace)
		x.namespaces[s.namespace] = in
	}
	l = &list{space: s, in: in}
	x.lists[s], in.lists = l, append(in.lists, l)
	return l
}

func (x *Index) dropList(l *list) {
	if l.users--; l.users > 0 {
		return
	}
	delete(x.lists, l.space)
	l.in.lists = slices.DeleteFunc(l.in.lists, func(other *list) bool { return other == l })
	if len(l.in.lists) == 0 {
		delete(x.namespaces, l.in.name)
	}
}

// list puts an entry into the list of its space, unlist takes it out.
func (x *Index) list(e *entry) {
	l := e.group.value.list
	l.insert(l.find(e), e)
	x.changes++
}

func (x *Index) unlist(e *entry) {
	l := e.group.value.list
	l.remove(l.find(e))
	x.changes++
}

// Changes returns another number than before if a list has changed since, or the wall clock was stepped.
func (x *Index) Changes() uint64 { return x.changes }

// Holdings returns how many retained volumes there are of each namespace, in no order.
func (x *Index) Holdings() []volume.Holding {
	all := make([]volume.Holding, 0, len(x.lists))
	for s, l := range x.lists {
		if l.length > 0 {
			all = append(all, volume.Holding{
				Namespace: s.namespace, NamespaceUID: s.namespaceUID, Verdict: s.verdict,
				Volumes: l.length, Newest: x.wall(l.last()), Oldest: x.wall(l.first()),
			})
		}
	}
	return all
}

// Newest lists the retained volumes that are selected, the newest first, up to the limit. It looks
// at no more than atMost volumes; limit and atMost are taken to be at least 1. next continues the list, as the Before of
// the next selection; it is the zero Key at the end.
func (x *Index) Newest(s volume.Selection, atMost int) (page []Known, next volume.Key) {
	m := x.newest(s)
	// The lists begin after Before, and the UID of a pod is compared as it is kept.
	s.Before = volume.Key{}
	pod := s.Pod
	s.Pod = ""
	var last *entry
	for looked := 0; len(m) > 0; looked++ {
		e := m[0].entry
		if x.wall(e).Before(s.Since.Round(0)) {
			break // and so are all that follow
		}
		if looked > 0 && (looked >= atMost || len(page) >= s.Limit) {
			return page, x.key(last)
		}
		if last = e; (pod == "" || e.podUID() == pod) && s.Selects(x.shown(e)) {
			page = append(page, x.known(e))
		}
		m.next()
	}
	return page, volume.Key{}
}

// merge goes through several lists at once, the newest entry first.
type merge []cursor

// cursor is the next entry of a list.
type cursor struct {
	*entry
	position
	list *list
}

// newest begins a merge of the lists that may have the selected volumes.
func (x *Index) newest(s volume.Selection) merge {
	var m merge
	begin := func(l *list) {
		c := cursor{position: l.end(), list: l}
		if !s.Before.IsZero() {
			c.position = l.search(func(e *entry) bool { return x.isBefore(e, s.Before) })
		}
		if c.entry = l.before(&c.position); c.entry != nil {
			m = append(m, c)
		}
	}
	if s.Namespace != "" || s.NoNamespace {
		if in := x.namespaces[s.Namespace]; in != nil {
			for _, l := range in.lists {
				begin(l)
			}
		}
	} else {
		for _, l := range x.lists {
			begin(l)
		}
	}
	heap.Init(&m)
	return m
}

// next goes on to the next entry.
func (m *merge) next() {
	c := &(*m)[0]
	if c.entry = c.list.before(&c.position); c.entry == nil {
		heap.Pop(m)
	} else {
		heap.Fix(m, 0)
	}
}

func (m merge) Len() int           { return len(m) }
func (m merge) Less(i, j int) bool { return before(m[j].entry, m[i].entry) }
func (m merge) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(c any)        { *m = append(*m, c.(cursor)) }

func (m *merge) Pop() any {
	last := len(*m) - 1
	c := (*m)[last]
	*m = (*m)[:last]
	return c
}

// before orders by the time of unpublishing, as the keys do. The ID decides among equals, so that the order never
// depends on chance.
func before(a, b *entry) bool {
	if a.since != b.since {
		return a.since < b.since
	}
	return compareIDs(a, b) < 0
}

func compareIDs(a, b *entry) int {
	if a.rare == nil && b.rare == nil {
		return bytes.Compare(a.id[:], b.id[:])
	}
	return strings.Compare(string(a.volumeID()), string(b.volumeID()))
}

// wall returns when a volume was unpublished, by the wall clock.
func (x *Index) wall(e *entry) time.Time { return x.clock.time(e.since).Round(0) }

// isBefore reports whether the key of an entry is less.
func (x *Index) isBefore(e *entry, key volume.Key) bool {
	by := x.wall(e).Compare(key.Unpublished)
	return by < 0 || by == 0 && e.volumeID() < key.ID
}

func (x *Index) key(e *entry) volume.Key { return volume.Key{Unpublished: x.wall(e), ID: e.volumeID()} }
