package ephemeral

import (
	"testing"
	"time"
	"unsafe"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/retained"
)

// distance is how far the two readings of a time are from those of another.
func distance(t, from time.Time) time.Duration { return t.Round(0).Sub(from.Round(0)) - t.Sub(from) }

// TestTimesComeBack from the index as they are on disk, to the nanosecond.
func TestTimesComeBack(t *testing.T) {
	for name, followed := range map[string]time.Time{
		"a fresh node": {}, "after a start": time.Now().Add(-time.Hour), "of the wall clock": time.Unix(1e9, 0),
	} {
		c, q := &clock{}, &retained.Index{}
		c.follow(followed)
		c.follow(time.Now().Add(-time.Minute)) // is not the first
		if hasBoth(followed) {
			q.Put(volume.Record{ID: "old"}.Retain(followed, time.Hour))
		}
		last := time.Now()
		for range 1000 {
			r := volume.Record{ID: "v"}.Retain(c.now(), time.Hour)
			q.Put(r)
			if got, _ := q.Look("v"); got.Key() != r.Key() || !got.Unpublished.Equal(r.Unpublished) {
				t.Fatalf("%s: %v came back as %v", name, r.Unpublished, got.Unpublished)
			}
			if r.Unpublished.Before(last) {
				t.Fatalf("%s: %v comes before %v", name, r.Unpublished, last)
			}
			last = r.Unpublished
		}
	}
}

// TestClockFollowsSteps of the wall clock, and no monotonic reading is lost or moved.
func TestClockFollowsSteps(t *testing.T) {
	began := time.Now()
	c := &clock{}
	for i, step := range []time.Duration{0, time.Second, -time.Second, 2 * time.Second, 3 * time.Second, -time.Hour, 0} {
		now := began.Add(time.Duration(i) * time.Minute)
		// No function of package time steps one clock only, so this relies on how a time.Time keeps its
		// two readings: from bit 30 of the first word on there are seconds of the wall clock.
		*(*uint64)(unsafe.Pointer(&now)) += uint64(step/time.Second) << 30
		if d := distance(now, began); d != step {
			t.Fatalf("stepped by %v, want %v", d, step)
		}
		got := c.at(now)
		if got.Sub(now) != 0 || !hasBoth(got) {
			t.Errorf("%v became %v", now, got)
		}
		if off := distance(got, now); off.Abs() > maxStep {
			t.Errorf("after a step by %v the wall clock is off by %v", step, off)
		}
	}
}
