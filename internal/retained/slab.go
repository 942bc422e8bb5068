package retained

import "unsafe"

// chunkLength is how many values are allocated at a time: 64 KiB of them.
const chunkLength = 1 << 10

// slab holds values of one type, each under a number. The collector does not look inside if the
// type has no pointers. The zero slab is empty and ready to use.
//
// A slab never shrinks: the next value takes the place of one that was freed.
type slab[T any] struct {
	chunks [][]T
	// used is how many places have ever been in use. free are those that no longer are.
	used number
	free []number
}

// number is the number of a value in its slab. 0 is none.
type number = uint32

// alloc makes room for a value and returns its number. The value is zero, or whatever was there
// before.
func (s *slab[T]) alloc() number {
	if last := len(s.free) - 1; last >= 0 {
		n := s.free[last]
		s.free = s.free[:last]
		return n
	}
	if s.used == number(len(s.chunks)*chunkLength) {
		s.chunks = append(s.chunks, make([]T, chunkLength))
	}
	s.used++
	return s.used
}

// at returns the value with a number that alloc returned.
func (s *slab[T]) at(n number) *T {
	place := n - 1
	return &s.chunks[place/chunkLength][place%chunkLength]
}

func (s *slab[T]) release(n number) { s.free = append(s.free, n) }

// memory returns how many bytes the values take.
func (s *slab[T]) memory() int {
	var zero T
	return len(s.chunks) * chunkLength * int(unsafe.Sizeof(zero))
}
