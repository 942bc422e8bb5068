package check

import (
	"testing"
	"time"
)

func TestFree(t *testing.T) {
	for _, test := range []struct {
		name     string
		space    Space
		headroom float64
		want     float64
	}{
		{"no headroom, full", Space{TotalBytes: 100}, 0, 1},
		{"no limits", Space{}, 0.1, 1},
		{"enough", Space{TotalBytes: 1000, FreeBytes: 100}, 0.1, 1},
		{"half", Space{TotalBytes: 1000, FreeBytes: 50}, 0.1, 0.5},
		{"full", Space{TotalBytes: 1000}, 0.1, 0},
		{"inodes are shorter", Space{TotalBytes: 1000, FreeBytes: 50, TotalInodes: 100, FreeInodes: 2}, 0.1, 0.2},
		{"bytes are shorter", Space{TotalBytes: 1000, FreeBytes: 10, TotalInodes: 100, FreeInodes: 9}, 0.1, 0.1},
	} {
		if got := free(test.space, test.headroom); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestTight(t *testing.T) {
	for _, test := range []struct {
		name  string
		space Space
		want  bool
	}{
		{"no limits", Space{}, false},
		{"room", Space{TotalBytes: 1000, FreeBytes: 20}, false},
		{"no bytes", Space{TotalBytes: 1000, FreeBytes: 19}, true},
		{"no inodes", Space{TotalBytes: 1000, FreeBytes: 500, TotalInodes: 1000, FreeInodes: 1}, true},
	} {
		if got := tight(test.space); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}

func TestPressureWindows(t *testing.T) {
	var p pressure
	if p.current() != 1 {
		t.Errorf("factor %v before anything was measured, want 1", p.current())
	}
	for i := range 400 { // 20 seconds
		f := 1.0
		switch {
		case i == 100: // at 5 s, once
			f = 0.25
		case i >= 200 && i < 300: // 10 s to 15 s
			f = 0.5
		}
		p.add(at(float64(i)/20), f, f, f, i == 100, time.Hour)
	}
	for _, test := range []struct {
		name      string
		from, to  float64
		low, high float64
		noRoom    bool
	}{
		{"before all", -10, -5, 1, 1, false},
		{"no pressure", 0, 3, 1, 1, false},
		{"a single dip", 4, 7, 0.25, 1, true},
		{"the dip's slice", 5.5, 5.6, 0.25, 1, true},
		{"lasting pressure", 11, 13, 0.5, 0.5, false},
		{"its end", 14, 17, 0.5, 1, false},
		{"after it", 16, 100, 1, 1, false},
		{"everything", 0, 100, 0.25, 1, true},
		{"after all", 50, 60, 1, 1, false},
	} {
		low, high := p.extremes(at(test.from), at(test.to))
		if low != test.low || high != test.high {
			t.Errorf("%s: factors %v to %v, want %v to %v", test.name, low, high, test.low, test.high)
		}
		if got := p.noRoom(at(test.from), at(test.to)); got != test.noRoom {
			t.Errorf("%s: no room %t, want %t", test.name, got, test.noRoom)
		}
	}
}

func TestPressureForgets(t *testing.T) {
	var p pressure
	for i := range 10_000 {
		p.add(at(float64(i)), 0.5, 0.5, 0.5, false, time.Minute)
	}
	if n := len(p.slices); n > 1200 {
		t.Errorf("%d slices are kept of 10000, want no more than needed", n)
	}
	if low, high := p.extremes(at(9950), at(9999)); low != 0.5 || high != 0.5 {
		t.Errorf("the last minute is forgotten: %v to %v", low, high)
	}
}

func TestFactor(t *testing.T) {
	for _, test := range []struct{ free, floor, want float64 }{
		{1, 0.5, 1}, {0.75, 0.5, 0.5}, {0.5, 0.5, 0}, {0.1, 0.5, 0}, {0.75, 0.75, 0}, {0.99, 1, 0}, {1, 1, 1},
	} {
		if got := factor(test.free, test.floor); got != test.want {
			t.Errorf("%v of the headroom free with a floor at %v: %v, want %v", test.free, test.floor, got, test.want)
		}
	}
}

// TestRaised: fast writers raise the floor for a while, slow ones do not.
func TestRaised(t *testing.T) {
	var p pressure
	disk := func(free uint64) Space { return Space{TotalBytes: 1000, FreeBytes: free} }
	for _, step := range []struct {
		at   float64
		free uint64
		want float64
	}{
		{0, 500, 0.5}, {0.5, 490, 0.5}, {1, 465, 0.875}, {3, 465, 0.875}, {3.5, 365, 1}, {10, 365, 1}, {20, 365, 0.5}, {21, 800, 0.5},
	} {
		if got := p.raised(at(step.at), disk(step.free), 0.1, 2500*time.Millisecond); got != step.want {
			t.Errorf("at %v s with %d free: %v, want %v", step.at, step.free, got, step.want)
		}
	}
}
