package retained

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func TestGCPercent(t *testing.T) {
	for queue, want := range map[int]int{0: 100, 2 << 20: 94, garbage: 50, 123 << 20: 20, 1 << 30: 3} {
		if got := GCPercent(queue); got != want {
			t.Errorf("%d%% with a queue of %d bytes, want %d%%", got, queue, want)
		}
	}
	// Between two collections there is always room for some garbage.
	for queue := 0; queue < 1<<30; queue += 1 << 20 {
		if room := queue * GCPercent(queue) / 100; room > garbage || GCPercent(queue) <= 0 {
			t.Errorf("a queue of %d bytes lets %d bytes of garbage wait", queue, room)
		}
	}
}

// TestQueueTellsHowItGrew: once for each chunk, and never again for places that are free.
func TestQueueTellsHowItGrew(t *testing.T) {
	var grew []int
	q := &Queue{Grew: func(bytes int) { grew = append(grew, bytes) }}
	const size = 2*chunkLength + 1
	fill := func() {
		for i := range size {
			q.Push(retained(fmt.Sprintf("csi-%064x", i), time.Duration(i), time.Hour))
		}
	}
	fill()
	for {
		if _, ok := takeNext(q, 1); !ok {
			break
		}
	}
	fill()
	const chunk = 64 * chunkLength
	last := math.MinInt
	for _, bytes := range grew {
		if bytes <= last || bytes%chunk != 0 {
			t.Errorf("it grew to %v", grew)
		}
		last = bytes
	}
	if want := 6 * chunk; last != want {
		t.Errorf("it takes %d bytes, want %d", last, want)
	}
}
