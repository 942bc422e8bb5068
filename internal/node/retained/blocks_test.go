package retained

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestBlocksAgainstSlice inserts and removes anywhere, numbers of four bytes among others, and
// compares with a plain slice.
func TestBlocksAgainstSlice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var l blocks
	var want []number
	check := func() {
		t.Helper()
		var got []number
		p := l.end()
		for n := l.before(&p); n != 0; n = l.before(&p) {
			got = append(got, n)
		}
		slices.Reverse(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%d numbers, want %d: %v, want %v", len(got), len(want), got, want)
		}
		for i := range l.all {
			if length := l.all[i].length(); length == 0 || length > blockLength {
				t.Fatalf("block %d of %d numbers", i, length)
			}
		}
	}
	at := func(n number) position { return l.search(func(m number) bool { return m < n }) }
	insert := func(n number) {
		i, found := slices.BinarySearch(want, n)
		if found {
			return
		}
		want = slices.Insert(want, i, n)
		l.insert(at(n), n)
	}
	for _, limit := range []uint32{1 << 20, 1<<32 - 1} {
		for range 10 * blockLength {
			insert(1 + rng.Uint32N(limit))
		}
		check()
	}
	for len(want) > 0 {
		if rng.IntN(4) == 0 {
			insert(1 + rng.Uint32())
		}
		i := rng.IntN(len(want))
		l.remove(at(want[i]))
		want = slices.Delete(want, i, i+1)
		if len(want)%100 == 0 {
			check()
		}
	}
	if check(); len(l.all) != 0 {
		t.Errorf("%d blocks of nothing", len(l.all))
	}
}

// TestBlocksAreFull when the list grows at its end, and at least half full when it shrinks.
func TestBlocksAreFull(t *testing.T) {
	var l blocks
	const length = 20 * blockLength
	for i := range number(length) {
		l.append(i + 1)
	}
	if len(l.all) != length/blockLength {
		t.Errorf("%d blocks, want %d", len(l.all), length/blockLength)
	}
	for n := number(1); n <= length; n++ {
		if n%10 != 0 {
			l.remove(l.search(func(m number) bool { return m < n }))
		}
	}
	if most := 2*length/10/mergedLength + 1; len(l.all) > most {
		t.Errorf("%d blocks of %d numbers, want at most %d", len(l.all), length/10, most)
	}
}
