package offheap

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"
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
	var s Slab[value]
	t.Cleanup(func() { closeSlab(t, &s) })
	known := map[uint32]value{}
	var numbers []uint32
	for step := range 5 * chunkLength {
		// It grows over several chunks, shrinks, and grows again.
		grow := step/chunkLength != 3
		switch {
		case rng.IntN(8) > 0 == grow || len(numbers) == 0:
			number := s.Alloc()
			if _, ok := known[number]; ok || number == 0 {
				t.Fatalf("step %d: number %d is in use", step, number)
			}
			v := value{number: rng.Int64(), small: uint16(step)}
			copy(v.text[:], "some text")
			*s.At(number) = v
			known[number] = v
			numbers = append(numbers, number)
		default:
			i := rng.IntN(len(numbers))
			number := numbers[i]
			if got := *s.At(number); got != known[number] {
				t.Fatalf("step %d: number %d is %+v, want %+v", step, number, got, known[number])
			}
			s.Free(number)
			delete(known, number)
			numbers[i] = numbers[len(numbers)-1]
			numbers = numbers[:len(numbers)-1]
		}
	}
	for number, want := range known {
		if got := *s.At(number); got != want {
			t.Errorf("number %d is %+v, want %+v", number, got, want)
		}
	}
	if len(s.chunks) < 3 {
		t.Errorf("%d chunks, want several", len(s.chunks))
	}
}

func TestFreedPlacesAreUsedAgain(t *testing.T) {
	var s Slab[value]
	t.Cleanup(func() { closeSlab(t, &s) })
	for range 3 * chunkLength {
		s.Free(s.Alloc())
	}
	if s.used != 1 || len(s.chunks) != 1 {
		t.Errorf("%d places in %d chunks, want one", s.used, len(s.chunks))
	}
}

func TestClosedSlabIsEmpty(t *testing.T) {
	var s Slab[value]
	s.Alloc()
	closeSlab(t, &s)
	closeSlab(t, &s)
	if number := s.Alloc(); number != 1 || *s.At(number) != (value{}) {
		t.Errorf("the first value has number %d and is %+v, want 1 and zero", number, *s.At(number))
	}
	closeSlab(t, &s)
}

// TestCloseGivesMemoryBack: the address space of so many slabs would show.
func TestCloseGivesMemoryBack(t *testing.T) {
	const slabs = 2000
	before := addressSpace(t)
	for range slabs {
		var s Slab[value]
		s.Alloc()
		closeSlab(t, &s)
	}
	all := slabs * chunkLength * int(unsafe.Sizeof(value{}))
	if grown := addressSpace(t) - before; grown > all/2 {
		t.Errorf("%d bytes more are mapped, after %d were and were given back", grown, all)
	}
}

// addressSpace is how much memory of this process is mapped, in bytes.
func addressSpace(t *testing.T) (bytes int) {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(statm), &bytes); err != nil {
		t.Fatal(err)
	}
	return bytes * os.Getpagesize()
}

func TestNoPointers(t *testing.T) {
	mustPanic(t, func() { new(Slab[string]).Alloc() })
	mustPanic(t, func() { new(Slab[*int]).Alloc() })
	mustPanic(t, func() { new(Slab[[2]struct{ f []byte }]).Alloc() })
	mustPanic(t, func() { new(Slab[uintptr]).Alloc() })
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

func closeSlab(t *testing.T, s *Slab[value]) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
