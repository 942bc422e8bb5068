package lifespan

// shared keeps values that many have in common once, each under a number. The zero
// shared is empty and ready to use.
type shared[V comparable] struct {
	numbers map[V]uint32
	values  []counted[V]
	// free are the numbers that are not in use.
	free []uint32
}

type counted[V comparable] struct {
	value V
	users int
}

// use returns the number of a value, for one user more.
func (s *shared[V]) use(v V) uint32 {
	number, ok := s.numbers[v]
	if !ok {
		number = s.add(v)
	}
	s.values[number].users++
	return number
}

func (s *shared[V]) add(v V) (number uint32) {
	if s.numbers == nil {
		s.numbers = map[V]uint32{}
	}
	if last := len(s.free) - 1; last >= 0 {
		number, s.free = s.free[last], s.free[:last]
	} else {
		number = uint32(len(s.values))
		s.values = append(s.values, counted[V]{})
	}
	s.values[number].value = v
	s.numbers[v] = number
	return number
}

// len returns how many values there are.
func (s *shared[V]) len() int { return len(s.numbers) }

// has tells whether a value has users.
func (s *shared[V]) has(v V) bool {
	_, ok := s.numbers[v]
	return ok
}

// value returns the value with a number that is in use.
func (s *shared[V]) value(number uint32) V { return s.values[number].value }

// drop forgets the value once no user is left.
func (s *shared[V]) drop(number uint32) {
	c := &s.values[number]
	if c.users--; c.users > 0 {
		return
	}
	delete(s.numbers, c.value)
	*c = counted[V]{}
	s.free = append(s.free, number)
}
