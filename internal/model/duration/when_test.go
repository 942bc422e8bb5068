package duration

import (
	"testing"
	"time"
	"unsafe"
)

// TestWhen: a time that was read before the wall clock was set is told by what the wall clock shows now.
func TestWhen(t *testing.T) {
	for name, step := range map[string]time.Duration{"no step": 0, "was late": -11 * time.Hour, "was early": 11 * time.Hour} {
		at := time.Now().Add(-time.Minute)
		want := at.Round(0)
		// No function of package time steps one clock only, so this relies on how a time.Time keeps its two
		// readings: from bit 30 of the first word on there are seconds of the wall clock.
		*(*uint64)(unsafe.Pointer(&at)) += uint64(step/time.Second) << 30
		if got := ByNow(at); got.Sub(want).Abs() > time.Second {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		told, err := time.Parse(time.RFC3339, When(at))
		if err != nil || told.Sub(want).Abs() > 2*time.Second || told.Location() != time.UTC {
			t.Errorf("%s: %v, %v, want %v", name, told, err, want)
		}
	}
	for _, stays := range []time.Time{{}, time.Unix(1, 2), time.Unix(-1<<31, 0), time.Unix(1<<32, 0)} {
		if got := ByNow(stays); !got.Equal(stays) {
			t.Errorf("%v became %v", stays, got)
		}
	}
}
