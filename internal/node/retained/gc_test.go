package retained

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

func TestGCPercent(t *testing.T) {
	for queue, want := range map[int]int{0: 100, 2 << 20: 94, garbage: 50, 123 << 20: 20, 1 << 30: 3} {
		if got := GCPercent(queue); got != want {
			t.Errorf("%d%% with an index of %d bytes, want %d%%", got, queue, want)
		}
	}
	// Between two collections there is always room for some garbage.
	for queue := 0; queue < 1<<30; queue += 1 << 20 {
		if room := queue * GCPercent(queue) / 100; room > garbage || GCPercent(queue) <= 0 {
			t.Errorf("an index of %d bytes lets %d bytes of garbage wait", queue, room)
		}
	}
}

// TestIndexTellsItsSize now and then, when it grows and when it shrinks.
func TestIndexTellsItsSize(t *testing.T) {
	var told []int
	x := &Index{}
	x.Watch(func(bytes int) { told = append(told, bytes/volumeBytes) })
	const size = 2*resizeStep + 1
	for i := range size {
		x.Put(retained(fmt.Sprintf("csi-%064x", i), time.Duration(i), time.Hour))
	}
	for range 2 { // to and fro at the same number says nothing
		x.Forget(volume.ID(fmt.Sprintf("csi-%064x", size-1)))
		x.Put(retained(fmt.Sprintf("csi-%064x", size-1), 0, time.Hour))
	}
	for i := range size {
		x.Forget(volume.ID(fmt.Sprintf("csi-%064x", i)))
	}
	if want := []int{0, resizeStep, 2 * resizeStep, resizeStep, 0}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
