package retained

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/katbox/katbox/internal/model/volume"
)

// index holds the retained volumes of each [space] by [volume.Key]. It costs at most 4 bytes for
// each volume.
//
// The volumes whose spaces are in their texts, because there are too many, share one list. The zero
// index is empty and ready to use.
type index struct {
	// table has the entries.
	table *table
	// lists has the list of each space, by the number of the space; nil for a space that has none. named
	// has those of each namespace.
	lists []*list
	named map[string][]*list
	// changes counts them.
	changes  uint64
	holdings holdings
}

// list has the volumes of one space.
type list struct {
	blocks
	space *space
	place int // of its holding, from 1 on; 0 if that has not been counted
	// changed: it is among the lists to be counted.
	changed bool
}

const blockOverhead = int(unsafe.Sizeof(block{}))

// list returns the list that has, or is to have, an entry.
func (x *index) list(n number) *list {
	at := x.table.group(n).space
	for int(at) >= len(x.lists) {
		x.lists = append(x.lists, nil)
	}
	l := x.lists[at]
	if l == nil {
		if x.named == nil {
			x.named = map[string][]*list{}
		}
		l = &list{space: x.table.spaces.value(at)}
		x.lists[at] = l
		x.named[l.space.namespace] = append(x.named[l.space.namespace], l)
	}
	return l
}

func (x *index) insert(t *table, n number) {
	x.table = t
	l := x.list(n)
	l.insert(x.find(l, n), n)
	x.changes++
	x.holdings.change(l)
}

func (x *index) remove(n number) {
	l := x.list(n)
	l.remove(x.find(l, n))
	x.changes++
	if l.length > 0 {
		x.holdings.change(l)
		return
	}
	x.holdings.drop(l)
	x.lists[x.table.group(n).space] = nil
	namespace := l.space.namespace
	x.named[namespace] = slices.DeleteFunc(x.named[namespace], func(other *list) bool { return other == l })
	if len(x.named[namespace]) == 0 {
		delete(x.named, namespace)
	}
}

// find returns where an entry is in its list, or where it is to be.
func (x *index) find(l *list, n number) position {
	if l.length > 0 && x.table.before(l.last(), n) {
		return l.end() // most are inserted there
	}
	return l.search(func(m number) bool { return x.table.before(m, n) })
}

// since returns the position after all entries whose key is less than the given one.
func (x *index) since(l *list, key volume.Key) position {
	return l.search(func(m number) bool { return x.table.compareKey(m, key) < 0 })
}

// memory returns how many bytes the index takes.
func (x *index) memory() (bytes int) {
	for _, l := range x.lists {
		if l != nil {
			bytes += l.memory() + int(unsafe.Sizeof(*l))
		}
	}
	return bytes
}

// sortable is an entry with its time, which is expensive to look up.
type sortable struct {
	since int64
	number
}

func (t *table) sortable(n number) sortable { return sortable{t.entry(n).since, n} }

// compare orders entries by their keys.
func (t *table) compare(a, b sortable) int {
	if by := cmp.Compare(a.since, b.since); by != 0 {
		return by
	}
	return strings.Compare(string(t.id(a.number)), string(t.id(b.number)))
}

// wall returns when a volume was unpublished, by the wall clock.
func (t *table) wall(n number) time.Time { return t.unpublished(n).Round(0) }

func (t *table) key(n number) volume.Key { return volume.Key{Unpublished: t.wall(n), ID: t.id(n)} }

func (t *table) compareKey(n number, key volume.Key) int {
	if by := t.wall(n).Compare(key.Unpublished); by != 0 {
		return by
	}
	return strings.Compare(string(t.id(n)), string(key.ID))
}
