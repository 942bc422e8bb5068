package retained

// interned keeps each value that many share once, under a number. The zero interned is empty and
// ready to use.
type interned[V comparable] struct {
	numbers map[V]number
	values  slab[counted[V]]
}

type counted[V comparable] struct {
	value V
	users int
}

// use returns the number of v, for one more user.
func (s *interned[V]) use(v V) number {
	if n, ok := s.numbers[v]; ok {
		s.values.at(n).users++
		return n
	}
	if s.numbers == nil {
		s.numbers = map[V]number{}
	}
	n := s.values.alloc()
	*s.values.at(n) = counted[V]{v, 1}
	s.numbers[v] = n
	return n
}

// crowded reports whether v would be one value too many.
func (s *interned[V]) crowded(v V) bool {
	_, known := s.numbers[v]
	return !known && len(s.numbers) >= maxGroups
}

// value returns the value with a number that is in use. It is not to be changed.
func (s *interned[V]) value(n number) *V { return &s.values.at(n).value }

// drop forgets the value with the last of its users.
func (s *interned[V]) drop(n number) {
	c := s.values.at(n)
	if c.users--; c.users > 0 {
		return
	}
	delete(s.numbers, c.value)
	*c = counted[V]{}
	s.values.release(n)
}
