package fleet

import (
	"container/heap"
	"slices"
	"sort"
)

// newest keeps the newest entries of all that are added, up to a limit and up to mostBytes: a list of 5,000
// takes no more memory however much the nodes answer, and however long the texts in it are.
type newest struct {
	limit int
	// kept is a heap, the oldest first; bytes is the sum of their weights.
	kept  byAge
	bytes int
	// copies finds what a node and the archive have both; nil without an archive.
	copies map[copyOf]*Entry
	// out is the newest entry that is not kept; nil if all are. Those that are kept are newer.
	out *Entry
}

// add adds an entry. It returns false if the entry is too old, and so are all below.
func (n *newest) add(e *Entry) bool {
	replaced := n.replace(e)
	switch {
	case replaced:
		return true
	case n.out != nil && compare(e, n.out) <= 0:
		return false
	case len(n.kept) == n.limit && compare(e, n.kept[0]) <= 0:
		n.out = e
		return false
	}
	heap.Push(&n.kept, e)
	n.bytes += e.weight()
	if n.copies != nil {
		n.copies[copyOf{e.Volume.Node, e.Volume.ID}] = e
	}
	for len(n.kept) > n.limit || n.bytes > mostBytes && len(n.kept) > 1 {
		n.out = heap.Pop(&n.kept).(*Entry)
		n.bytes -= n.out.weight()
		if n.copies != nil {
			delete(n.copies, copyOf{n.out.Volume.Node, n.out.Volume.ID})
		}
	}
	return n.out != e
}

// copyOf is a volume of a node. Another node that says it has the volume is not believed: it would hide that one.
type copyOf struct{ node, id string }

// replace reports whether the entry is of a volume that is kept already: the node and the archive have it both. What the node
// says counts. If by that it is too old, neither is kept: the page
// would end there, and what is between would be in none.
func (n *newest) replace(e *Entry) bool {
	was := n.copies[copyOf{e.Volume.Node, e.Volume.ID}]
	if was == nil {
		return false
	}
	if was.Volume.Archived != "" && e.Volume.Archived == "" {
		i := slices.Index(n.kept, was)
		if n.out != nil && compare(e, n.out) <= 0 {
			if len(n.kept) > 1 { // else the page would be empty, and the next one the same
				heap.Remove(&n.kept, i)
				n.bytes -= was.weight()
				delete(n.copies, copyOf{was.Volume.Node, was.Volume.ID})
			}
			return false
		}
		n.kept[i] = e
		n.bytes += e.weight() - was.weight()
		n.copies[copyOf{e.Volume.Node, e.Volume.ID}] = e
		heap.Fix(&n.kept, i) // the node's clock may have been adjusted since it was archived
	}
	return true
}

// full reports whether nothing older is kept.
func (n *newest) full() bool { return len(n.kept) >= n.limit || n.out != nil }

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
