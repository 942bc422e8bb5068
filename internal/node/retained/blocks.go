package retained

import (
	"slices"
	"sort"
)

const (
	// blockLength is how many numbers a block holds at most. A block that is full takes exactly one
	// of the sizes in which Go allocates.
	blockLength = 512
	// mergedLength is how long a block may get when it is merged with the next one: some room is
	// left, so that the next insertion does not split it again.
	mergedLength = blockLength * 3 / 4
	// narrow and wide are how many bytes a number takes. A slab rarely has 16 million places.
	narrow, wide = 3, 4
)

// blocks is a list of numbers in the order that its user gives it, in about 3 bytes for each. It
// takes the same time to insert a number anywhere. The zero blocks is empty and ready to use.
type blocks struct {
	all    []block
	length int
}

// block is a part of the list, never an empty one.
type block struct {
	packed []byte
	width  int
}

// position is a place in a list. The end is the place after the last number of the last block.
type position struct{ block, at int }

// search returns the first position whose number is not less, where all that are less come first.
func (l *blocks) search(less func(number) bool) position {
	b := sort.Search(len(l.all), func(i int) bool { return !less(l.all[i].at(l.all[i].length() - 1)) })
	if b == len(l.all) {
		return l.end()
	}
	return position{b, sort.Search(l.all[b].length(), func(i int) bool { return !less(l.all[b].at(i)) })}
}

func (l *blocks) end() position {
	last := len(l.all) - 1
	if last < 0 {
		return position{}
	}
	return position{last, l.all[last].length()}
}

// first and last return the first and the last number of a list that is not empty.
func (l *blocks) first() number { return l.all[0].at(0) }

func (l *blocks) last() number {
	b := &l.all[len(l.all)-1]
	return b.at(b.length() - 1)
}

// before moves p back by one, and returns the number there; 0 at the beginning.
func (l *blocks) before(p *position) number {
	if p.at == 0 {
		if p.block == 0 {
			return 0
		}
		p.block--
		p.at = l.all[p.block].length()
	}
	p.at--
	return l.all[p.block].at(p.at)
}

// insert inserts n before p. A list that only grows at its end has full blocks.
func (l *blocks) insert(p position, n number) {
	l.length++
	switch {
	case len(l.all) == 0:
		l.all = append(l.all, newBlock(n))
		return
	case l.all[p.block].length() < blockLength:
	case p == l.end():
		l.all = append(l.all, newBlock(n))
		return
	default:
		first, second := l.all[p.block].split()
		l.all = slices.Replace(l.all, p.block, p.block+1, first, second)
		if p.at > first.length() {
			p = position{p.block + 1, p.at - first.length()}
		}
	}
	l.all[p.block].insert(p.at, n)
}

// append adds n at the end.
func (l *blocks) append(n number) { l.insert(l.end(), n) }

// remove removes the number at p.
func (l *blocks) remove(p position) {
	l.length--
	l.all[p.block].remove(p.at)
	if l.all[p.block].length() == 0 {
		l.all = slices.Delete(l.all, p.block, p.block+1)
		return
	}
	for _, first := range []int{p.block - 1, p.block} {
		if first >= 0 && first+1 < len(l.all) && l.all[first].length()+l.all[first+1].length() <= mergedLength {
			l.all[first].append(&l.all[first+1])
			l.all = slices.Delete(l.all, first+1, first+2)
			return
		}
	}
}

func newBlock(n number) block {
	b := block{width: narrow}
	b.insert(0, n)
	return b
}

func (b *block) length() int { return len(b.packed) / b.width }

func (b *block) at(i int) number {
	n := number(0)
	for j, part := range b.packed[i*b.width : (i+1)*b.width] {
		n |= number(part) << (8 * j)
	}
	return n
}

func (b *block) insert(i int, n number) {
	if n>>(8*narrow) != 0 {
		b.widen()
	}
	b.reserve(1)
	b.packed = slices.Insert(b.packed, i*b.width, b.pack(n)...)
}

func (b *block) pack(n number) []byte {
	return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}[:b.width]
}

func (b *block) append(other *block) {
	b.reserve(other.length())
	for i := range other.length() {
		b.insert(b.length(), other.at(i))
	}
}

// reserve makes room for more numbers, and for an eighth of those that are there: the growth that
// Go would choose is too much.
func (b *block) reserve(more int) {
	if need := b.length() + more; need*b.width > cap(b.packed) {
		b.resize(min(need+need/8, max(need, blockLength)))
	}
}

func (b *block) resize(length int) {
	b.packed = append(make([]byte, 0, length*b.width), b.packed...)
}

func (b *block) remove(i int) {
	b.packed = slices.Delete(b.packed, i*b.width, (i+1)*b.width)
	if length := b.length(); length+length/4+narrow < cap(b.packed)/b.width {
		b.resize(length)
	}
}

func (b *block) split() (first, second block) {
	middle := b.length() / 2 * b.width
	first, second = block{b.packed[:middle:middle], b.width}, block{b.packed[middle:], b.width}
	first.resize(first.length())
	second.resize(second.length())
	return first, second
}

// widen makes room for numbers of four bytes.
func (b *block) widen() {
	if b.width == wide {
		return
	}
	narrower := *b
	*b = block{width: wide}
	b.append(&narrower)
}

// memory returns how many bytes the list takes.
func (l *blocks) memory() int {
	bytes := cap(l.all) * blockOverhead
	for i := range l.all {
		bytes += cap(l.all[i].packed)
	}
	return bytes
}
