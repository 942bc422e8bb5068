package report

import (
	"math"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
)

// roundTicks divides a range at about four round numbers that are no closer than
// the given distance.
func roundTicks(low, high, least float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*factor) <= 5 {
			step *= factor
			break
		}
	}
	step = max(step, least)
	unit, suffix := 1.0, ""
	if max(high, -low) >= 1e6 {
		unit, suffix = 1e6, "M"
	}
	var ticks []plot.Tick
	for n := math.Ceil(low / step); n*step <= high; n++ {
		label := "0"
		if n != 0 {
			// More digits would be those of rounding.
			label = strconv.FormatFloat(n*step/unit, 'g', 6, 64) + suffix
		}
		ticks = append(ticks, plot.Tick{Value: n * step, Label: label})
	}
	return ticks
}

// decadeTicks divides a logarithmic range at the powers of ten.
func decadeTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for v := low; v <= high*1.001; v *= 10 {
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 6, 64)})
	}
	return ticks
}

// timeTicks divides seconds at about eight round times.
func timeTicks(low, high float64) []plot.Tick {
	steps := []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if (high-low)/s <= 9 {
			step = s
			break
		}
	}
	var ticks []plot.Tick
	for n := math.Ceil(low / step); n*step <= high; n++ {
		label := strconv.FormatFloat(n*step, 'g', 4, 64) + "s"
		if n*step >= 60 {
			label = time.Duration(n * step * float64(time.Second)).Round(time.Second).String()
		}
		for _, zero := range []string{"m0s", "h0m"} {
			if strings.HasSuffix(label, zero) {
				label = strings.TrimSuffix(label, zero[1:])
			}
		}
		ticks = append(ticks, plot.Tick{Value: n * step, Label: label})
	}
	return ticks
}
