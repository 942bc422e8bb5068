package fleet

import (
	"container/heap"
	"slices"
	"sort"
)

// newest keeps the newest entries of all that are added, up to a limit: a list of 5,000 takes no more
// memory however much the nodes answer.
type newest struct {
	limit int
	// kept is a heap, the oldest first.
	kept byAge
	// more: there are entries below those that are kept.
	more bool
}

// add adds an entry. It returns false if the entry is too old, and so are all below.
func (n *newest) add(e *Entry) bool {
	switch {
	case len(n.kept) < n.limit:
		heap.Push(&n.kept, e)
		return true
	case compare(e, n.kept[0]) > 0:
		n.kept[0] = e
		heap.Fix(&n.kept, 0)
		n.more = true
		return true
	}
	n.more = true
	return false
}

// full reports whether the limit is reached.
func (n *newest) full() bool { return len(n.kept) >= n.limit }

// sort prepares above and from.
func (n *newest) sort() { slices.SortFunc(n.kept, compare) } // a sorted slice is a heap

// above returns how many entries are at a place or above it.
func (n *newest) above(p place) int {
	return len(n.kept) - sort.Search(len(n.kept), func(i int) bool { return placeOf(&n.kept[i].Volume).compare(p) >= 0 })
}

// at returns the i-th entry, counted from the newest.
func (n *newest) at(i int) *Entry { return n.kept[len(n.kept)-1-i] }

// take returns the newest entries, the first count of them.
func (n *newest) take(count int) []Entry {
	entries := make([]Entry, count)
	for i := range entries {
		entries[i] = *n.at(i)
	}
	return entries
}

func compare(a, b *Entry) int { return placeOf(&a.Volume).compare(placeOf(&b.Volume)) }

// byAge is a heap of entries, the oldest first.
type byAge []*Entry

func (b byAge) Len() int           { return len(b) }
func (b byAge) Less(i, j int) bool { return compare(b[i], b[j]) < 0 }
func (b byAge) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *byAge) Push(e any)        { *b = append(*b, e.(*Entry)) }

func (b *byAge) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}
