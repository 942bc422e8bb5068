package offheap

import (
	"fmt"
	"reflect"
	"unsafe"

	"golang.org/x/sys/unix"
)

// chunkLength is how many values are asked for at a time. What is not used of a
// chunk takes no memory, but for a page.
const chunkLength = 16 << 10

// Slab holds values of one type, which must have no pointers, each under a number.
// The zero Slab is empty and ready to use. It is not safe for concurrent use.
//
// It becomes no smaller: the place of a value that was freed is for the next one. It
// has to be closed, because the collector does not free it either.
type Slab[T any] struct {
	chunks [][]T
	// used is how many places have been in use, free are those that no longer are.
	used uint32
	free []uint32
}

// Alloc makes room for a value and returns its number, which is not 0. The value is
// zero, or whatever was there before.
//
// There being no memory is a panic, as it is for the heap.
func (s *Slab[T]) Alloc() uint32 {
	if last := len(s.free) - 1; last >= 0 {
		number := s.free[last]
		s.free = s.free[:last]
		return number
	}
	if s.used == uint32(len(s.chunks)*chunkLength) {
		s.chunks = append(s.chunks, newChunk[T]())
	}
	s.used++
	return s.used
}

// At returns the value with a number that Alloc returned. It must not be used after
// Free or Close.
func (s *Slab[T]) At(number uint32) *T {
	place := number - 1
	return &s.chunks[place/chunkLength][place%chunkLength]
}

// Free gives the place of a value up.
func (s *Slab[T]) Free(number uint32) { s.free = append(s.free, number) }

// Close frees everything. The Slab is empty then.
func (s *Slab[T]) Close() error {
	for i, chunk := range s.chunks {
		if err := unix.Munmap(bytesOf(chunk)); err != nil {
			s.chunks = s.chunks[i:]
			return fmt.Errorf("free memory: %w", err)
		}
	}
	*s = Slab[T]{}
	return nil
}

func newChunk[T any]() []T {
	if t := reflect.TypeFor[T](); !plain(t) {
		panic(fmt.Errorf("offheap: the collector would not see what is pointed to from %s", t))
	}
	var zero T
	size := chunkLength * int(unsafe.Sizeof(zero))
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		panic(fmt.Errorf("allocate %d bytes: %w", size, err))
	}
	// The kernel returns whole pages, so that any type is aligned.
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), chunkLength)
}

// bytesOf is the memory of a chunk.
func bytesOf[T any](chunk []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(chunk))), len(chunk)*int(unsafe.Sizeof(chunk[0])))
}

// plain tells whether values of a type have no pointers.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return plain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128 && t.Kind() != reflect.Uintptr
}
