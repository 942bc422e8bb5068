package lifespan

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// wantSizes checks the sums.
func wantSizes(t *testing.T, q *Queue, bytes int64, unmeasured int) {
	t.Helper()
	if q.Bytes() != bytes || q.Unmeasured() != unmeasured {
		t.Errorf("%d bytes and %d unmeasured, want %d and %d", q.Bytes(), q.Unmeasured(), bytes, unmeasured)
	}
}

func TestSizes(t *testing.T) {
	var q Queue
	if r, ok := q.NextUnmeasured(); ok {
		t.Errorf("of an empty queue %v is to be measured", r)
	}
	old, hot := retained("old", 0, time.Hour), retained("hot", time.Minute, time.Hour)
	q.Push(old)
	q.Push(hot)
	q.Push(deleting("d", 0, time.Hour))
	wantSizes(t, &q, 0, 2)
	if r, _ := q.NextUnmeasured(); r.ID != "hot" {
		t.Errorf("%s is measured before what was retained last", r.ID)
	}
	q.Measured("hot", hot.Unpublished, 4096)
	wantSizes(t, &q, 4096, 1)
	q.Measured("hot", hot.Unpublished, 1)
	q.Measured("d", epoch, 1)
	q.Measured("gone", epoch, 1)
	wantSizes(t, &q, 4096, 1)

	// Published and retained again while it was being measured.
	again := retained("old", time.Hour, time.Hour)
	q.Push(again)
	q.Measured("old", old.Unpublished, 1)
	wantSizes(t, &q, 4096, 1)
	// What failed is not tried for ever.
	q.Measured("old", again.Unpublished, 0)
	wantSizes(t, &q, 4096, 0)

	q.Take("hot")
	wantSizes(t, &q, 0, 0)
	q.Push(hot)
	wantSizes(t, &q, 0, 1)
	q.Take("hot")
	wantSizes(t, &q, 0, 0)
}

// TestSizesAgainstSum compares the sums with those of a list.
func TestSizesAgainstSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const unknown = -1
	var q Queue
	naive := map[volume.ID]int64{}
	for step := range 20_000 {
		id := volume.ID(fmt.Sprintf("v%d", rng.IntN(100)))
		switch rng.IntN(4) {
		case 0:
			q.Push(retained(string(id), time.Duration(rng.IntN(100))*time.Second, time.Hour))
			naive[id] = unknown
		case 1:
			q.Take(id)
			delete(naive, id)
		default:
			r, ok := q.NextUnmeasured()
			if ok != (q.Unmeasured() > 0) || ok && naive[r.ID] != unknown {
				t.Fatalf("step %d: next to be measured: %s, %t; its size is %d", step, r.ID, ok, naive[r.ID])
			}
			if ok {
				naive[r.ID] = rng.Int64N(1 << 40)
				q.Measured(r.ID, r.Unpublished, naive[r.ID])
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
		wantSizes(t, &q, bytes, unmeasured)
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
}
