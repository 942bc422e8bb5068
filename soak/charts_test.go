package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

func labels(ticks []plot.Tick) string {
	var list []string
	for _, tick := range ticks {
		list = append(list, tick.Label)
	}
	return strings.Join(list, " ")
}

func TestTicks(t *testing.T) {
	for _, test := range []struct{ name, got, want string }{
		{"to ten", labels(roundTicks(0, 10, 0)), "0 2 4 6 8 10"},
		{"shares", labels(roundTicks(0, 0.7, 0)), "0 0.2 0.4 0.6"},
		{"below zero", labels(roundTicks(-70, 4, 0)), "-60 -40 -20 0"},
		{"whole numbers", labels(roundTicks(0, 1.05, 1)), "0 1"},
		{"millions", labels(roundTicks(0, 2.1e6, 1)), "0 0.5M 1M 1.5M 2M"},
		{"decades", labels(decadeTicks(0.1, 1000)), "0.1 1 10 100 1000"},
		{"seconds", labels(timeTicks(0, 4)), "0s 0.5s 1s 1.5s 2s 2.5s 3s 3.5s 4s"},
		{"minutes", labels(timeTicks(0, 200)), "0s 30s 1m 1m30s 2m 2m30s 3m"},
		{"hours", labels(timeTicks(0, 8*3600)), "0s 1h 2h 3h 4h 5h 6h 7h 8h"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %q, want %q", test.name, test.got, test.want)
		}
	}
}

func TestThinKeepsThePeaks(t *testing.T) {
	var long plotter.XYs
	for n := range 10000 {
		long = append(long, plotter.XY{X: float64(n), Y: math.Sin(float64(n))})
	}
	long[4321].Y, long[7654].Y = 99, -99
	got := thin(long, 100)
	if len(got) > 100 || !slices.Contains(got, long[4321]) || !slices.Contains(got, long[7654]) {
		t.Errorf("%d points %v, want at most 100 with the peaks", len(got), got)
	}
	if !slices.IsSortedFunc(got, func(a, b plotter.XY) int { return int(a.X - b.X) }) {
		t.Errorf("not in the order of time: %v", got)
	}
	if short := long[:50]; len(thin(short, 100)) != 50 {
		t.Error("a short line has lost points")
	}
}

func TestRates(t *testing.T) {
	samples := []sample{{Seconds: 0, Calls: 0}, {Seconds: 2, Calls: 10}, {Seconds: 2.01, Calls: 11}, {Seconds: 3, Calls: 12}}
	got := rates(samples, always(func(s sample) int { return s.Calls }))
	want := plotter.XYs{{X: 2, Y: 5}, {X: 3, Y: 2}}
	if !slices.Equal(got, want) {
		t.Errorf("rates %v, want %v: the sample right after another counts with the next", got, want)
	}
	if got := rates(nil, always(func(sample) int { return 0 })); len(got) != 0 {
		t.Errorf("rates of nothing: %v", got)
	}
}

// TestChartsOfHardlyAnything: a run may end before there is anything to draw.
func TestChartsOfHardlyAnything(t *testing.T) {
	for name, samples := range map[string][]sample{
		"nothing":    nil,
		"one":        {{}},
		"two alike":  {{Seconds: 1}, {Seconds: 1}},
		"no latency": {{Seconds: 1, Publish: &interval{Calls: 1}}, {Seconds: 2, Publish: &interval{Calls: 1, P99Millis: 1000}}},
	} {
		s := newStats()
		s.samples = samples
		for _, c := range curves(s, 0) {
			drawn, err := c.svg()
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if strings.Contains(string(drawn), "NaN") || strings.Contains(string(drawn), "Inf") {
				t.Errorf("%s: chart %q has numbers that are none", name, c.title)
			}
		}
	}
}
