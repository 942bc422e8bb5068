package retained

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// value has a size that is no power of two.
type value struct {
	number int64
	text   [11]byte
	small  uint16
}

// TestSlabAgainstMap compares a slab with a map.
func TestSlabAgainstMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var s slab[value]
	known := map[uint32]value{}
	var numbers []uint32
	for step := range 5 * chunkLength {
		// It grows over several chunks, shrinks, and grows again.
		grow := step/chunkLength != 3
		switch {
		case rng.IntN(8) > 0 == grow || len(numbers) == 0:
			number := s.alloc()
			if _, ok := known[number]; ok || number == 0 {
				t.Fatalf("step %d: number %d is in use", step, number)
			}
			v := value{number: rng.Int64(), small: uint16(step)}
			copy(v.text[:], "some text")
			*s.at(number) = v
			known[number] = v
			numbers = append(numbers, number)
		default:
			i := rng.IntN(len(numbers))
			number := numbers[i]
			if got := *s.at(number); got != known[number] {
				t.Fatalf("step %d: number %d is %+v, want %+v", step, number, got, known[number])
			}
			s.release(number)
			delete(known, number)
			numbers[i] = numbers[len(numbers)-1]
			numbers = numbers[:len(numbers)-1]
		}
	}
	for number, want := range known {
		if got := *s.at(number); got != want {
			t.Errorf("number %d is %+v, want %+v", number, got, want)
		}
	}
	if len(s.chunks) < 3 {
		t.Errorf("%d chunks, want several", len(s.chunks))
	}
}

func TestFreedPlacesAreUsedAgain(t *testing.T) {
	var s slab[value]
	for range 3 * chunkLength {
		s.release(s.alloc())
	}
	if s.used != 1 || len(s.chunks) != 1 || s.memory() != chunkLength*24 {
		t.Errorf("%d places in %d chunks of %d bytes, want one", s.used, len(s.chunks), s.memory())
	}
}

// TestTheCollectorDoesNotLookInside: a pointer in an entry would have it scan all of them.
func TestTheCollectorDoesNotLookInside(t *testing.T) {
	for _, value := range []any{entry{}, text{}} {
		if hasPointers(reflect.TypeOf(value)) {
			t.Errorf("%T has a pointer", value)
		}
	}
	for _, value := range []any{"", new(int), [2]struct{ f []byte }{}, map[int]int{}} {
		if !hasPointers(reflect.TypeOf(value)) {
			t.Errorf("%T has a pointer, and that is not seen", value)
		}
	}
}

// hasPointers reports whether values of a type may have pointers.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return hasPointers(t.Elem())
	case reflect.Struct:
		for field := range t.Fields() {
			if hasPointers(field.Type) {
				return true
			}
		}
		return false
	}
	return t.Kind() < reflect.Bool || t.Kind() > reflect.Complex128
}
