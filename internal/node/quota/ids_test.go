package quota

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// TestTakeOfARangeThatGetsFull compares with a plain map.
func TestTakeOfARangeThatGetsFull(t *testing.T) {
	const size = 50*wordBits + 17
	rng := seeded()
	s := ids{size: size, draw: rng.Uint32N}
	taken := map[uint32]bool{}
	take := func() {
		n, ok := s.take()
		if ok != (len(taken) < size) || ok && (taken[n] || n >= size) {
			t.Fatalf("took %d, %t, with %d taken, this one among them: %t", n, ok, len(taken), taken[n])
		}
		if ok {
			taken[n] = true
		}
	}
	for range size + 2 {
		take()
	}
	for range 20 * size {
		n := rng.Uint32N(size)
		switch rng.IntN(5) {
		case 0:
			s.add(n)
			taken[n] = true
		case 1, 2:
			s.remove(n)
			delete(taken, n)
		default:
			take()
		}
		if s.count != len(taken) {
			t.Fatalf("%d are taken, want %d", s.count, len(taken))
		}
	}
}

// TestNoIDTellsTheNext: neighbours are rare, and another process takes others.
func TestNoIDTellsTheNext(t *testing.T) {
	const many = 1000
	s := ids{size: DefaultRange.Size, draw: seeded().Uint32N}
	var all []uint32
	for range many {
		n, _ := s.take()
		all = append(all, n)
	}
	slices.Sort(all)
	near := 0
	for i := range many - 1 {
		if all[i+1]-all[i] == 1 {
			near++
		}
	}
	if near > many/50 || all[many-1] >= spread || all[many-1] < spread/2 {
		t.Errorf("of %d IDs %d follow on another one; the highest is %d", many, near, all[many-1])
	}
	var two [2][8]uint32
	for i := range two {
		p := newProjects(t, newFake(), func(c *Config) { c.IDs.Size, c.Draw = DefaultRange.Size, nil })
		for j := range two[i] {
			two[i][j], _ = p.Take(someSize)
		}
	}
	if two[0] == two[1] {
		t.Errorf("two processes take the same IDs: %d", two[0])
	}
}

// TestMemoryOfIDs is that of a million, and of the whole range.
func TestMemoryOfIDs(t *testing.T) {
	s := ids{size: DefaultRange.Size, draw: seeded().Uint32N}
	for range 1_000_000 {
		s.take()
	}
	if bytes := 8 * cap(s.taken); bytes > 1_000_000 {
		t.Errorf("a million IDs take %d bytes", bytes)
	}
	s.add(DefaultRange.Size - 1)
	if bytes := 8 * cap(s.taken); bytes > 4<<20 {
		t.Errorf("the highest ID takes %d bytes", bytes)
	}
}

func BenchmarkTakeAfterAMillion(b *testing.B) {
	s := ids{size: DefaultRange.Size, draw: seeded().Uint32N}
	for range 1_000_000 {
		s.take()
	}
	for b.Loop() {
		n, _ := s.take()
		s.remove(n)
	}
}
