package main

import (
	"math"
	"slices"
)

// median is the middle one of the numbers, or the mean of the two in the middle;
// 0 if there are none.
func median(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// medianRound has the median of each number of the rounds, by itself.
func medianRound(rounds []round) round {
	of := func(number func(round) float64) float64 {
		var all []float64
		for _, r := range rounds {
			all = append(all, number(r))
		}
		return median(all)
	}
	latencies := func(which func(round) latency) latency {
		return latency{
			P50: of(func(r round) float64 { return which(r).P50 }),
			P99: of(func(r round) float64 { return which(r).P99 }),
			Max: of(func(r round) float64 { return which(r).Max }),
		}
	}
	return round{
		Seconds:          of(func(r round) float64 { return r.Seconds }),
		Calls:            int(of(func(r round) float64 { return float64(r.Calls) })),
		CallsPerSecond:   of(func(r round) float64 { return r.CallsPerSecond }),
		CPUMicrosPerCall: of(func(r round) float64 { return r.CPUMicrosPerCall }),
		Publish:          latencies(func(r round) latency { return r.Publish }),
		Unpublish:        latencies(func(r round) latency { return r.Unpublish }),
	}
}

// inTurns is how many times one's number is in another's: the median of what each
// turn says, as the two of a turn met the same machine.
func inTurns(a, b measured, number func(round) float64) float64 {
	var all []float64
	for n := range min(len(a.Rounds), len(b.Rounds)) {
		r := ratio(number(a.Rounds[n]), number(b.Rounds[n]))
		if math.IsNaN(r) {
			return r
		}
		all = append(all, r)
	}
	return median(all)
}

// ratio is how many times b is in a; not a number where that says nothing.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return math.NaN()
	}
	return a / b
}
