package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/katbox/katbox/soak/internal/workload"
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
	calls := always(func(s sample) int { return s.Calls })
	want := plotter.XYs{{X: 2, Y: 5}, {X: 3, Y: 2}}
	if got := rates(samples, 0.5, calls); !slices.Equal(got, want) {
		t.Errorf("rates %v, want %v: the sample right after another counts with the next", got, want)
	}
	if got := rates(nil, 0.5, calls); len(got) != 0 {
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
		"no disk":    {{Seconds: 1, Disk: &diskSample{}}, {Seconds: 2, Disk: &diskSample{}}},
	} {
		x := &Result{Samples: samples, FaultSpans: []faultSpan{{Kind: "unheard-of"}}}
		for _, c := range x.curves() {
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

// TestDiskChart: what a run uses of a huge disk would not be seen beside it.
func TestDiskChart(t *testing.T) {
	of := func(first, second uint64) chart {
		x := &Result{Workload: workloadFacts{Headroom: 0.1}, Samples: []sample{
			{Disk: &diskSample{FreeInodes: first, TotalInodes: 1000}}, {Disk: &diskSample{FreeInodes: second, TotalInodes: 1000}},
		}}
		return x.diskChart("Free inodes", 1, true, func(d diskSample) (uint64, uint64) { return d.FreeInodes, d.TotalInodes })
	}
	if c := of(900, 100); c.lines[0].points[1].Y != 100 || c.limit != 100 || c.top != 1000 || c.note != "" {
		t.Errorf("%+v, want what is free of the disk, and its headroom", c)
	}
	if c := of(900, 890); c.lines[0].points[1].Y != -10 || c.limit != 0 || c.note != "change from 900" {
		t.Errorf("%+v, want the change", c)
	}
}

func TestFaultsAreMarked(t *testing.T) {
	two := 2.0
	faults := []faultSpan{
		{Kind: workload.DaemonKill, From: 1, To: &two}, {Kind: workload.SlowDisk, From: 3}, {Kind: workload.ClockStep, From: 4},
	}
	for i, want := range []float64{2, 10, 4} {
		if got := faults[i].end(10); got != want {
			t.Errorf("%s ends at %g, want %g", faults[i].Kind, got, want)
		}
	}
	drawn, err := chart{width: 10, faults: faults}.svg()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"stroke:var(--daemon-kill)": true, "fill:var(--daemon-kill);fill-opacity:var(--shade)": true,
		"stroke:var(--slow-disk)": true, "fill:var(--slow-disk);fill-opacity:var(--shade)": true,
		// It is over at once.
		"stroke:var(--clock-step)": true, "fill:var(--clock-step)": false,
		"stroke:var(--disk-full)": false,
	} {
		if got := strings.Contains(string(drawn), text); got != want {
			t.Errorf("%s is in the chart: %t, want %t", text, got, want)
		}
	}
}

// TestBandsAreThinned: what cannot be told apart only makes the page heavy, but
// nothing else may go.
func TestBandsAreThinned(t *testing.T) {
	draw := func(spans ...[2]float64) string {
		var list []faultSpan
		for i := range spans {
			list = append(list, faultSpan{Kind: workload.SlowDisk, From: spans[i][0], To: &spans[i][1]})
		}
		drawn, err := chart{width: 1000, faults: list}.svg()
		if err != nil {
			t.Fatal(err)
		}
		return string(drawn)
	}
	one := draw([2]float64{100, 400})
	if got := draw([2]float64{100, 400}, [2]float64{100.1, 400.1}); got != one {
		t.Error("a fault is drawn that cannot be told from the one before")
	}
	for name, second := range map[string][2]float64{"in the middle of the first": {200, 300}, "longer": {100.1, 500}, "later": {600, 600}} {
		if draw([2]float64{100, 400}, second) == one {
			t.Errorf("the second fault, which is %s, is not drawn", name)
		}
	}
}

// TestInks: a chart refers to a colour by its value, so two must not be equal;
// and a kind of fault should not look like another.
func TestInks(t *testing.T) {
	names, colors := make(map[string]bool), make(map[string]bool)
	for _, i := range themeColors() {
		if names[i.Name] || colors[string(i.Light)] {
			t.Errorf("themeColor %s %s is there twice", i.Name, i.Light)
		}
		names[i.Name], colors[string(i.Light)] = true, true
		i.color() // panics if it is none
	}
	for _, kind := range []workload.FaultKind{
		workload.DaemonKill, workload.KubeletRestart, workload.DiskFull, workload.NoInodes, workload.SlowDisk, workload.ClockStep,
	} {
		if colorOf(kind).Name == other.Name {
			t.Errorf("%s has no colour", kind)
		}
	}
}
