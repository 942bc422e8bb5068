package retained

// interned keeps each value that many share once, under a number. The zero interned is empty and
// ready to use.
type interned[V comparable] struct {
	numbers map[V]uint32
	values  []counted[V]
	// free are the numbers that are not in use.
	free []uint32
}

type counted[V comparable] struct {
	value V
	users int
}

// use returns the number of v, for one more user.
func (s *interned[V]) use(v V) uint32 {
	if number, ok := s.numbers[v]; ok {
		s.values[number].users++
		return number
	}
	if s.numbers == nil {
		s.numbers = map[V]uint32{}
	}
	number := uint32(len(s.values))
	if last := len(s.free) - 1; last >= 0 {
		number, s.free = s.free[last], s.free[:last]
	} else {
		s.values = append(s.values, counted[V]{})
	}
	s.values[number] = counted[V]{v, 1}
	s.numbers[v] = number
	return number
}

// len returns how many values there are.
func (s *interned[V]) len() int { return len(s.numbers) }

// has reports whether v has users.
func (s *interned[V]) has(v V) bool {
	_, ok := s.numbers[v]
	return ok
}

// value returns the value with a number that is in use.
func (s *interned[V]) value(number uint32) V { return s.values[number].value }

// drop forgets the value with the last of its users.
func (s *interned[V]) drop(number uint32) {
	c := &s.values[number]
	if c.users--; c.users > 0 {
		return
	}
	delete(s.numbers, c.value)
	*c = counted[V]{}
	s.free = append(s.free, number)
}
