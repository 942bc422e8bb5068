package quota

import "math/bits"

const (
	wordBits = 64
	allOnes  = ^uint64(0)
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

// ids are the numbers below size, of which some are taken. It finds the smallest free one with at
// most size/4096 steps.
type ids struct {
	size  uint32
	taken set
	// full has the words of taken in which all are taken. Below the word from of full all are full.
	full set
	from int
	// count is how many are taken.
	count int
}

func (s *ids) add(n uint32) {
	if s.taken.has(n) {
		return
	}
	s.taken.add(n)
	s.count++
	if s.taken[n/wordBits] == allOnes {
		s.full.add(n / wordBits)
	}
}

func (s *ids) remove(n uint32) {
	if !s.taken.has(n) {
		return
	}
	s.taken.remove(n)
	s.count--
	s.full.remove(n / wordBits)
	s.from = min(s.from, int(n/wordBits/wordBits))
}

// take takes the smallest free number, and tells whether there is one.
func (s *ids) take() (n uint32, ok bool) {
	for s.from < len(s.full) && s.full[s.from] == allOnes {
		s.from++
	}
	word := s.from * wordBits
	if s.from < len(s.full) {
		word += bits.TrailingZeros64(^s.full[s.from])
	}
	at := uint64(word) * wordBits
	if word < len(s.taken) {
		at += uint64(bits.TrailingZeros64(^s.taken[word]))
	}
	if at >= uint64(s.size) {
		return 0, false
	}
	s.add(uint32(at))
	return uint32(at), true
}
