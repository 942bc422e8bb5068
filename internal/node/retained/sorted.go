package retained

import (
	"iter"
	"slices"
	"sort"
)

// sorted is a list of entries in the order that its user gives it, in blocks: to insert one anywhere takes the same
// time, however many there are. The zero sorted is empty and ready to use.
type sorted struct {
	blocks [][]*entry // none is empty
	length int
}

const (
	// blockLength is how many entries a block holds at most.
	blockLength = 512
	// mergedLength is how long a block may get when it is merged with the next one: some room is left, so that the
	// next insertion does not split it again.
	mergedLength = blockLength * 3 / 4
)

// position is a place in a list. The end is the place after the last entry of the last block.
type position struct{ block, at int }

// search returns the first position whose entry is not less, where all that are less come first.
func (l *sorted) search(less func(*entry) bool) position {
	b := sort.Search(len(l.blocks), func(i int) bool { return !less(l.blocks[i][len(l.blocks[i])-1]) })
	if b == len(l.blocks) {
		return l.end()
	}
	return position{b, sort.Search(len(l.blocks[b]), func(i int) bool { return !less(l.blocks[b][i]) })}
}

// find returns where an entry is, or where it is to be, in a list that is sorted by before.
func (l *sorted) find(e *entry) position {
	if l.length > 0 && before(l.last(), e) {
		return l.end() // most are inserted there
	}
	return l.search(func(other *entry) bool { return before(other, e) })
}

func (l *sorted) end() position {
	last := len(l.blocks) - 1
	if last < 0 {
		return position{}
	}
	return position{last, len(l.blocks[last])}
}

// first and last return the first and the last entry of a list that is not empty.
func (l *sorted) first() *entry { return l.blocks[0][0] }

func (l *sorted) last() *entry {
	b := l.blocks[len(l.blocks)-1]
	return b[len(b)-1]
}

// at returns the entry at p; nil at the end.
func (l *sorted) at(p position) *entry {
	if p == l.end() {
		return nil
	}
	return l.blocks[p.block][p.at]
}

// before moves p back by one, and returns the entry there; nil at the beginning.
func (l *sorted) before(p *position) *entry {
	if p.at == 0 {
		if p.block == 0 {
			return nil
		}
		p.block--
		p.at = len(l.blocks[p.block])
	}
	p.at--
	return l.blocks[p.block][p.at]
}

// from returns the entries from p to the last. The list must not change meanwhile.
func (l *sorted) from(p position) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for ; p.block < len(l.blocks); p = (position{block: p.block + 1}) {
			for _, e := range l.blocks[p.block][p.at:] {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// insert inserts e before p. A list that only grows at its end has full blocks.
func (l *sorted) insert(p position, e *entry) {
	l.length++
	switch {
	case len(l.blocks) == 0 || p == l.end() && len(l.blocks[p.block]) == blockLength:
		l.blocks = append(l.blocks, []*entry{e})
		return
	case len(l.blocks[p.block]) == blockLength:
		b := l.blocks[p.block]
		const half = blockLength / 2
		l.blocks = slices.Insert(l.blocks, p.block+1, slices.Clone(b[half:]))
		clear(b[half:])
		l.blocks[p.block] = b[:half]
		if p.at > half {
			p = position{p.block + 1, p.at - half}
		}
	}
	l.blocks[p.block] = slices.Insert(l.blocks[p.block], p.at, e)
}

// remove removes the entry at p.
func (l *sorted) remove(p position) {
	l.length--
	l.blocks[p.block] = slices.Delete(l.blocks[p.block], p.at, p.at+1)
	if len(l.blocks[p.block]) == 0 {
		l.blocks = slices.Delete(l.blocks, p.block, p.block+1)
		return
	}
	for _, b := range []int{p.block - 1, p.block} {
		if b >= 0 && b+1 < len(l.blocks) && len(l.blocks[b])+len(l.blocks[b+1]) <= mergedLength {
			l.blocks[b] = append(l.blocks[b], l.blocks[b+1]...)
			l.blocks = slices.Delete(l.blocks, b+1, b+2)
			return
		}
	}
}
