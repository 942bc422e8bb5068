package quota

import (
	"math/rand/v2"
	"testing"
)

// TestSmallestFree compares with a plain map, in a range that gets full.
func TestSmallestFree(t *testing.T) {
	const size = 3*wordBits*wordBits + 17
	rng := rand.New(rand.NewPCG(1, 2))
	s := ids{size: size}
	taken := map[uint32]bool{}
	smallest := uint32(0)
	take := func() {
		for taken[smallest] {
			smallest++
		}
		n, ok := s.take()
		switch {
		case smallest >= size:
			if ok {
				t.Fatalf("took %d of a full range", n)
			}
			return
		case !ok || n != smallest:
			t.Fatalf("took %d, %t, want %d", n, ok, smallest)
		}
		taken[n] = true
	}
	for range size + 2 {
		take()
	}
	for range 3 * size {
		n := rng.Uint32N(size)
		switch rng.IntN(5) {
		case 0:
			s.add(n)
			taken[n] = true
		case 1, 2:
			s.remove(n)
			delete(taken, n)
			smallest = min(smallest, n)
		default:
			take()
		}
		if s.count != len(taken) {
			t.Fatalf("%d are taken, want %d", s.count, len(taken))
		}
	}
}

// TestMemoryOfIDs is that of a million, and of the whole range.
func TestMemoryOfIDs(t *testing.T) {
	s := ids{size: DefaultRange.Size}
	for range 1_000_000 {
		s.take()
	}
	if bytes := 8 * (cap(s.taken) + cap(s.full)); bytes > 1_000_000 {
		t.Errorf("a million IDs take %d bytes", bytes)
	}
	s.add(DefaultRange.Size - 1)
	if bytes := 8 * (cap(s.taken) + cap(s.full)); bytes > 4<<20 {
		t.Errorf("the highest ID takes %d bytes", bytes)
	}
}

func BenchmarkTakeAfterAMillion(b *testing.B) {
	s := ids{size: DefaultRange.Size}
	for range 1_000_000 {
		s.take()
	}
	for b.Loop() {
		s.remove(0)
		s.take()
		n, _ := s.take()
		s.remove(n)
	}
}
