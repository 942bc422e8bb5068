package lifespan

import (
	"math"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// room is a volume.Space of bytes alone, or of inodes alone.
type room struct{ Total, Free int64 }

func spaceOf(bytes, inodes room) volume.Space {
	return volume.Space{
		Total: volume.Size{Bytes: bytes.Total, Inodes: inodes.Total},
		Free:  volume.Size{Bytes: bytes.Free, Inodes: inodes.Free},
	}
}

func TestSpaceFactor(t *testing.T) {
	tests := []struct {
		name     string
		space    room
		headroom float64
		want     float64
	}{
		{"no headroom, full", room{Total: 100}, 0, 1},
		{"no headroom, empty", room{Total: 100, Free: 100}, 0, 1},
		{"all headroom, empty", room{Total: 100, Free: 100}, 1, 1},
		{"all headroom, three quarters", room{Total: 100, Free: 75}, 1, 0.5},
		{"all headroom, half", room{Total: 100, Free: 50}, 1, 0},
		{"all headroom, full", room{Total: 100}, 1, 0},
		{"a tenth, full", room{Total: 1000}, 0.1, 0},
		{"a tenth, exactly free", room{Total: 1000, Free: 100}, 0.1, 1},
		{"a tenth, one less", room{Total: 1000, Free: 99}, 0.1, 0.98},
		{"a tenth, one more", room{Total: 1000, Free: 101}, 0.1, 1},
		{"a tenth, a bit over half of it", room{Total: 1000, Free: 55}, 0.1, 0.1},
		{"a tenth, half of it", room{Total: 1000, Free: 50}, 0.1, 0},
		{"headroom rounds up", room{Total: 31, Free: 3}, 0.1, 0.5},
		{"headroom rounds up to one", room{Total: 1}, 0.1, 0},
		{"headroom rounds up, enough", room{Total: 11, Free: 2}, 0.1, 1},
		{"no limit", room{}, 0.1, 1},
		{"no limit, all headroom", room{}, 1, 1},
		{"no limit, but a count", room{Free: 5}, 0.1, 1},
		{"more free than total", room{Total: 10, Free: 20}, 1, 1},
		{"huge", room{Total: math.MaxInt64, Free: math.MaxInt64 / 4 * 3}, 1, 0.5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := marksOf(tt.space.Total, tt.headroom, Amount{}).factor(tt.space.Free); got != tt.want {
				t.Errorf("%+v with headroom %v: factor %v, want %v", tt.space, tt.headroom, got, tt.want)
			}
		})
	}
}

func TestFactorIsTheSmaller(t *testing.T) {
	limits := Limits{Headroom: 0.1}
	bytes, inodes := room{Total: 1000, Free: 75}, room{Total: 1000, Free: 60}
	if got := limits.Pressure(spaceOf(bytes, inodes), volume.Size{}).Factor; got != 0.2 {
		t.Errorf("inodes are shorter: factor %v, want 0.2", got)
	}
	if got := limits.Pressure(spaceOf(inodes, bytes), volume.Size{}).Factor; got != 0.2 {
		t.Errorf("bytes are shorter: factor %v, want 0.2", got)
	}
	if got := limits.Pressure(spaceOf(bytes, room{}), volume.Size{}).Factor; got != 0.5 {
		t.Errorf("no inode limit: factor %v, want 0.5", got)
	}
}

func TestInodesAreScarcer(t *testing.T) {
	for name, tt := range map[string]struct {
		line          Line
		bytes, inodes room
		want          bool
	}{
		"fewer inodes":      {Line{}, room{Total: 100, Free: 5}, room{Total: 10000, Free: 400}, true},
		"fewer bytes":       {Line{}, room{Total: 100, Free: 3}, room{Total: 10000, Free: 400}, false},
		"as few":            {Line{}, room{Total: 100, Free: 4}, room{Total: 10000, Free: 400}, false},
		"no limit":          {Line{}, room{Total: 100}, room{}, false},
		"no limit of bytes": {Line{}, room{}, room{Total: 100, Free: 100}, true},
		"no limit at all":   {Line{}, room{}, room{}, false},
		// 16 % of the bytes are below the floor, 10 % of the inodes are not.
		"nearer to its floor": {DefaultLine, room{Total: 100, Free: 16}, room{Total: 100, Free: 10}, false},
	} {
		if got := (Limits{Headroom: 0.1, Line: tt.line}).Pressure(spaceOf(tt.bytes, tt.inodes), volume.Size{}).InodesAreScarcer; got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

func TestCheckHeadroom(t *testing.T) {
	for _, h := range []float64{0, 0.1, 1} {
		if err := CheckHeadroom(h); err != nil {
			t.Errorf("CheckHeadroom(%v) = %v, want nil", h, err)
		}
	}
	for h, want := range map[float64]string{
		1.5:         "headroom 1.5 is outside of 0..1",
		-0.1:        "headroom -0.1 is outside of 0..1",
		math.NaN():  "headroom NaN is outside of 0..1",
		math.Inf(1): "headroom +Inf is outside of 0..1",
	} {
		if err := CheckHeadroom(h); err == nil || err.Error() != want {
			t.Errorf("CheckHeadroom(%v) = %v, want %q", h, err, want)
		}
	}
}

func TestDeadline(t *testing.T) {
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name     string
		lifespan time.Duration
		factor   float64
		want     time.Duration
	}{
		{"no pressure", 12 * time.Hour, 1, 12 * time.Hour},
		{"half", 12 * time.Hour, 0.5, 6 * time.Hour},
		{"full disk", 12 * time.Hour, 0, 0},
		{"no lifespan", 0, 0.7, 0},
		{"longest", math.MaxInt64, 1, math.MaxInt64},
		{"longest, half", math.MaxInt64, 0.5, 1 << 62},
		{"longest, almost no pressure", math.MaxInt64, math.Nextafter(1, 0), math.MaxInt64 - 1023},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Deadline(at, tt.lifespan, tt.factor).Sub(at); got != tt.want {
				t.Errorf("deadline after %v, want %v", got, tt.want)
			}
		})
	}
}

func TestDeadlineKeepsMonotonicReading(t *testing.T) {
	now := time.Now()
	got := Deadline(now, time.Hour, 0.5)
	if want := now.Add(30 * time.Minute); got != want {
		t.Errorf("deadline %v, want %v with the monotonic reading", got, want)
	}
}
