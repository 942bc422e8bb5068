package retained

// interned keeps each value that many share once, under a number. The zero interned is empty and
// ready to use.
type interned[V shareable[V]] struct {
	numbers map[V]number
	values  slab[counted[V]]
}

// shareable is a value that many share.
type shareable[V any] interface {
	comparable
	// clone returns an equal value. Its texts are not parts of larger ones, which it would keep in memory.
	clone() V
}

type counted[V comparable] struct {
	value V
	users int
}

// use returns the number of v, for one more user.
func (s *interned[V]) use(v V) number {
	if n, ok := s.join(v); ok {
		return n
	}
	return s.found(v)
}

// useFew is use, unless there are that many values and v would be one more: then ok is false.
func (s *interned[V]) useFew(v V, most int) (n number, ok bool) {
	if n, ok := s.join(v); ok {
		return n, true
	}
	if len(s.numbers) >= most {
		return 0, false
	}
	return s.found(v), true
}

// join returns the number of a value that has users, for one more.
func (s *interned[V]) join(v V) (n number, ok bool) {
	if n, ok = s.numbers[v]; ok {
		s.values.at(n).users++
	}
	return n, ok
}

// found returns the number of a new value, for its first user.
func (s *interned[V]) found(v V) number {
	if s.numbers == nil {
		s.numbers = map[V]number{}
	}
	v = v.clone()
	n := s.values.alloc()
	*s.values.at(n) = counted[V]{v, 1}
	s.numbers[v] = n
	return n
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
