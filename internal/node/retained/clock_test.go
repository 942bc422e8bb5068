package retained

import (
	"testing"
	"time"
	"unsafe"

	"github.com/katbox/katbox/internal/model/volume"
)

// stepped is a time after the wall clock was stepped by whole seconds.
type stepped struct {
	passed, step time.Duration
}

// at makes the time. No function of package time can without stepping the clock of the machine, so
// this relies on how a time.Time keeps its two readings.
func (s stepped) at(began time.Time) time.Time {
	t := began.Add(s.passed)
	readings := (*struct {
		wall      uint64 // from bit 30 on, seconds
		monotonic int64
		location  *time.Location
	})(unsafe.Pointer(&t))
	readings.wall += uint64(s.step/time.Second) << 30
	return t
}

// TestClock keeps times between which the wall clock was stepped. All of them go by the last step.
func TestClock(t *testing.T) {
	began := time.Now()
	for name, steps := range map[string][]stepped{
		"none":           {{0, 0}, {time.Hour, 0}, {-time.Hour, 0}},
		"ahead and back": {{0, 0}, {1, time.Hour}, {2, time.Hour}, {3, 0}, {4, -time.Hour}},
		"slowly":         {{0, 0}, {1, time.Second}, {2, 2 * time.Second}, {3, 3 * time.Second}, {4, 4 * time.Second}},
		"oldest last":    {{0, 365 * 24 * time.Hour}, {-70 * 365 * 24 * time.Hour, 365 * 24 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			var c clock
			var all []int64
			for _, s := range steps {
				c.follow(s.at(began))
				all = append(all, c.keep(s.at(began)))
			}
			last := steps[len(steps)-1]
			for i, since := range all {
				want := stepped{steps[i].passed, last.step}.at(began)
				if want.Sub(began) != steps[i].passed || want.Round(0).Sub(began.Round(0)) != steps[i].passed+last.step {
					t.Fatalf("%v is not a time after %+v", want, last)
				}
				got := c.time(since)
				if got.Sub(began) != want.Sub(began) {
					t.Errorf("%d: monotonic clock %v, want %v", i, got.Sub(began), want.Sub(began))
				}
				if off := got.Round(0).Sub(want.Round(0)); off < -maxStep || off > maxStep {
					t.Errorf("%d: the wall clock is off by %v", i, off)
				}
			}
		})
	}
}

// TestStepMovesNoDeadline: not those of volumes that are retained already, and not the order.
func TestStepMovesNoDeadline(t *testing.T) {
	began := time.Now()
	q := &Index{}
	for i, step := range []time.Duration{0, 100 * time.Hour, -100 * time.Hour} {
		now := stepped{time.Duration(i) * time.Minute, step}.at(began)
		q.Follow(now)
		q.Put(volume.Record{ID: volume.ID('a' + rune(i))}.Retain(now, time.Hour))
	}
	for i, id := range []volume.ID{"a", "b", "c"} {
		deadline, _ := nextDue(q, 1)
		next, _ := takeNext(q, 1)
		if want := time.Duration(i)*time.Minute + time.Hour; next.ID != id || deadline.Sub(began) != want {
			t.Errorf("%s goes after %v, want %s after %v", next.ID, deadline.Sub(began), id, want)
		}
	}
}

// TestClockWithoutMonotonicReading: then there is only the wall clock.
func TestClockWithoutMonotonicReading(t *testing.T) {
	var c clock
	for _, want := range []time.Time{{}, epoch, epoch.Add(1), time.Unix(0, 1), {}} {
		if got := c.time(c.keep(want)); !got.Equal(want) {
			t.Errorf("%v came back as %v", want, got)
		}
	}
}
