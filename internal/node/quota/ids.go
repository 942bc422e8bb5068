package quota

import "math/bits"

const (
	wordBits = 64
	// spread is how many numbers are drawn from while few are taken: quota files grow with the highest one.
	// Of more, at most one in sparse is taken, as long as there are so many.
	spread = 1 << 18
	sparse = 4
	// draws is how often a number is drawn before the next free one is taken.
	draws = 16
)

// set is a set of small numbers, with one bit for each up to the highest that it ever had.
type set []uint64

func (s set) has(n uint32) bool {
	word := int(n / wordBits)
	return word < len(s) && s[word]&(1<<(n%wordBits)) != 0
}

func (s *set) add(n uint32) {
	word := int(n / wordBits)
	for word >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[word] |= 1 << (n % wordBits)
}

func (s set) remove(n uint32) {
	if s.has(n) {
		s[n/wordBits] &^= 1 << (n % wordBits)
	}
}

// ids are the numbers below size, of which some are taken.
type ids struct {
	size uint32
	// draw returns any number below n.
	draw  func(n uint32) uint32
	taken set
	// count is how many are taken.
	count int
}

func (s *ids) add(n uint32) {
	if !s.taken.has(n) {
		s.taken.add(n)
		s.count++
	}
}

func (s *ids) remove(n uint32) {
	if s.taken.has(n) {
		s.taken.remove(n)
		s.count--
	}
}

// isFull reports whether all are taken.
func (s *ids) isFull() bool { return s.count >= int(s.size) }

// take takes any free number, and reports whether there is one. No number tells which one is next.
func (s *ids) take() (n uint32, ok bool) {
	if s.isFull() {
		return 0, false
	}
	among := uint32(spread)
	for among < s.size && int(among) < sparse*s.count {
		among *= 2
	}
	among = min(among, s.size)
	for range draws {
		if n = s.draw(among); !s.taken.has(n) {
			s.add(n)
			return n, true
		}
	}
	at, ok := s.firstFree(n, s.size)
	if !ok {
		at, ok = s.firstFree(0, n)
	}
	if ok {
		s.add(at)
	}
	return at, ok
}

// firstFree returns the first free number from from on that is below to.
func (s *ids) firstFree(from, to uint32) (n uint32, ok bool) {
	for n = from; n < to; n = (n/wordBits + 1) * wordBits {
		word := int(n / wordBits)
		if word >= len(s.taken) {
			return n, true
		}
		if free := ^s.taken[word] >> (n % wordBits); free != 0 {
			n += uint32(bits.TrailingZeros64(free))
			return n, n < to
		}
	}
	return 0, false
}
