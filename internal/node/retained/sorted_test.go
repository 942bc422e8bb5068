package retained

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSortedAgainstSlice inserts and removes anywhere, and compares with a plain slice.
func TestSortedAgainstSlice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var l sorted
	var want []int64
	check := func() {
		t.Helper()
		var got []int64
		p := l.end()
		for e := l.before(&p); e != nil; e = l.before(&p) {
			got = append(got, e.since)
		}
		slices.Reverse(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%d numbers, want %d: %v, want %v", len(got), len(want), got, want)
		}
		for i := range l.blocks {
			if length := len(l.blocks[i]); length == 0 || length > blockLength {
				t.Fatalf("block %d of %d numbers", i, length)
			}
		}
	}
	at := func(n int64) position { return l.search(func(e *entry) bool { return e.since < n }) }
	insert := func(n int64) {
		i, found := slices.BinarySearch(want, n)
		if found {
			return
		}
		want = slices.Insert(want, i, n)
		l.insert(at(n), &entry{since: n})
	}
	for range 20 * blockLength {
		insert(rng.Int64N(1 << 20))
	}
	check()
	for len(want) > 0 {
		if rng.IntN(4) == 0 {
			insert(rng.Int64N(1 << 20))
		}
		i := rng.IntN(len(want))
		l.remove(at(want[i]))
		want = slices.Delete(want, i, i+1)
		if len(want)%100 == 0 {
			check()
		}
	}
	if check(); len(l.blocks) != 0 {
		t.Errorf("%d blocks of nothing", len(l.blocks))
	}
}

// TestSortedIsFull when the list grows at its end, and at least half full when it shrinks.
func TestSortedIsFull(t *testing.T) {
	var l sorted
	const length = 20 * blockLength
	for i := range int64(length) {
		l.insert(l.end(), &entry{since: i})
	}
	if len(l.blocks) != length/blockLength {
		t.Errorf("%d blocks, want %d", len(l.blocks), length/blockLength)
	}
	for n := range int64(length) {
		if n%10 != 0 {
			l.remove(l.search(func(e *entry) bool { return e.since < n }))
		}
	}
	if most := 2*length/10/mergedLength + 1; len(l.blocks) > most {
		t.Errorf("%d blocks of %d numbers, want at most %d", len(l.blocks), length/10, most)
	}
}
