package retained

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// wantSizes checks the sums.
func wantSizes(t *testing.T, q *Index, bytes int64, unmeasured int) {
	t.Helper()
	if q.Bytes() != bytes || q.Unmeasured() != unmeasured {
		t.Errorf("%d bytes and %d unmeasured, want %d and %d", q.Bytes(), q.Unmeasured(), bytes, unmeasured)
	}
}

// wantUnmeasured checks which volumes are to be measured next.
func wantUnmeasured(t *testing.T, q *Index, atMost int, want ...volume.ID) {
	t.Helper()
	var got []volume.ID
	for r := range q.NextUnmeasured(atMost) {
		got = append(got, r.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("of %d, next to be measured: %v, want %v", atMost, got, want)
	}
}

func TestSizes(t *testing.T) {
	q := &Index{}
	wantUnmeasured(t, q, 10)
	old, hot := retained("old", 0, time.Hour), retained("hot", time.Minute, time.Hour)
	q.Put(old)
	q.Put(hot)
	q.Put(deleting("d", 0, time.Hour))
	wantSizes(t, q, 0, 2)
	wantUnmeasured(t, q, 1, "hot")
	wantUnmeasured(t, q, 2, "hot", "old")
	wantUnmeasured(t, q, 10, "hot", "old")
	q.Measured("hot", hot.Unpublished, volume.Size{Bytes: 4096})
	wantSizes(t, q, 4096, 1)
	q.Measured("hot", hot.Unpublished, volume.Size{Bytes: 512})
	q.Measured("d", epoch, volume.Size{Bytes: 1})
	q.Measured("gone", epoch, volume.Size{Bytes: 1})
	wantSizes(t, q, 4096, 1)

	// Published and retained again while it was being measured.
	again := retained("old", time.Hour, time.Hour)
	q.Put(again)
	q.Measured("old", old.Unpublished, volume.Size{Bytes: 1})
	wantSizes(t, q, 4096, 1)
	// A volume that could not be measured is not measured again.
	q.Measured("old", again.Unpublished, volume.Size{Bytes: 0})
	wantSizes(t, q, 4096, 0)

	take(q, "hot")
	wantSizes(t, q, 0, 0)
	q.Put(hot)
	wantSizes(t, q, 0, 1)
	take(q, "hot")
	wantSizes(t, q, 0, 0)
}

// TestSizesAgainstSum compares the sums with those of a list.
func TestSizesAgainstSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const unknown = -1
	q := &Index{}
	naive := map[volume.ID]int64{}
	for step := range 20_000 {
		id := volume.ID(fmt.Sprintf("v%d", rng.IntN(100)))
		switch rng.IntN(4) {
		case 0:
			q.Put(retained(string(id), time.Duration(step), time.Hour))
			naive[id] = unknown
		case 1:
			take(q, id)
			delete(naive, id)
		default:
			next := slices.Collect(q.NextUnmeasured(1 + rng.IntN(5)))
			if len(next) == 0 && q.Unmeasured() > 0 {
				t.Fatalf("step %d: none is next to be measured", step)
			}
			for _, r := range next {
				if naive[r.ID] != unknown {
					t.Fatalf("step %d: next to be measured: %s; its size is %d", step, r.ID, naive[r.ID])
				}
				naive[r.ID] = sector * rng.Int64N(1<<31)
				q.Measured(r.ID, r.Unpublished, volume.Size{Bytes: naive[r.ID], Inodes: rng.Int64N(1 << 30)})
			}
		}
		bytes, unmeasured := int64(0), 0
		for _, n := range naive {
			if n == unknown {
				unmeasured++
			} else {
				bytes += n
			}
		}
		wantSizes(t, q, bytes, unmeasured)
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
}
