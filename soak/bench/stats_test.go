package main

import (
	"math"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		numbers []float64
		want    float64
	}{
		{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 3, 2, 100}, 3.5},
	} {
		before := append([]float64(nil), test.numbers...)
		if got := median(test.numbers); got != test.want {
			t.Errorf("median of %v: %v, want %v", test.numbers, got, test.want)
		}
		for i := range before {
			if test.numbers[i] != before[i] {
				t.Errorf("it changed the numbers: %v, were %v", test.numbers, before)
			}
		}
	}
}

// TestMedianOfRoundsIsByNumber: the round with the median speed need not be the
// one with the median latency.
func TestMedianOfRoundsIsByNumber(t *testing.T) {
	t.Parallel()
	rounds := []round{
		{Seconds: 1, Calls: 10, CallsPerSecond: 100, CPUMicrosPerCall: 7, Publish: latency{1, 20, 300}, Unpublish: latency{3, 30, 100}},
		{Seconds: 2, Calls: 30, CallsPerSecond: 300, CPUMicrosPerCall: 5, Publish: latency{2, 10, 200}, Unpublish: latency{2, 20, 300}},
		{Seconds: 3, Calls: 20, CallsPerSecond: 200, CPUMicrosPerCall: 6, Publish: latency{3, 30, 100}, Unpublish: latency{1, 10, 200}},
	}
	want := round{Seconds: 2, Calls: 20, CallsPerSecond: 200, CPUMicrosPerCall: 6, Publish: latency{2, 20, 200},
		Unpublish: latency{2, 20, 200}}
	if got := medianRound(rounds); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestRatio(t *testing.T) {
	t.Parallel()
	if got := ratio(3, 2); got != 1.5 {
		t.Errorf("3 to 2: %v", got)
	}
	drifting := func(numbers ...float64) (m measured) {
		for _, n := range numbers {
			m.Rounds = append(m.Rounds, round{CPUMicrosPerCall: n})
		}
		return m
	}
	if got := inTurns(drifting(10, 22, 30, 44, 60), drifting(10, 20, 30, 40, 50), cpuPerCall); got != 1.1 {
		t.Errorf("in turns %v, want the middle one of 1, 1, 1.1, 1.1 and 1.2", got)
	}
	if got := inTurns(drifting(10, 20), drifting(10, 0), cpuPerCall); !math.IsNaN(got) {
		t.Errorf("in turns %v with one that says nothing", got)
	}
	if got := ratio(3, 0); !math.IsNaN(got) {
		t.Errorf("3 to nothing: %v, want none", got)
	}
}

func TestSummed(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	taken := []durations{
		{publish: []time.Duration{3 * ms, 1 * ms}, unpublish: []time.Duration{5 * ms}},
		{publish: []time.Duration{2 * ms}, unpublish: []time.Duration{6 * ms, 4 * ms}},
	}
	want := round{Seconds: 2, Calls: 6, CallsPerSecond: 3, CPUMicrosPerCall: 500, Publish: latency{2, 3, 3}, Unpublish: latency{5, 6, 6}}
	if got := summed(taken, 2*time.Second, 3*ms); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestVolumesForARound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		perSecond float64
		callers   int
		want      int
	}{
		{1000, 8, 1500}, {2, 8, 32}, {1e6, 8, mostVolumes},
	} {
		if got := volumesFor(round{CallsPerSecond: test.perSecond}, test.callers, 3*time.Second); got != test.want {
			t.Errorf("%v calls a second of %d callers: %d volumes, want %d", test.perSecond, test.callers, got, test.want)
		}
	}
}
