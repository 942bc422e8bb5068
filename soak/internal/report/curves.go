package report

import (
	"fmt"

	"gonum.org/v1/plot/plotter"
)

const (
	// A rate is taken over at least the whole of a span and over at least one
	// part of a run in so many: over less it would jump up and down.
	leastSpan = 0.5
	spanParts = 200
	// visibleShare is how much of a disk has to come and go to be seen in a
	// chart of all of it.
	visibleShare = 0.05
)

// curves are the charts of a run, in the order of the page.
func (x *Result) curves() []chart {
	s := x.Samples
	rate := func(of value) plotter.XYs { return rates(s, max(leastSpan, x.Seconds/spanParts), of) }
	list := []chart{
		single("Pods per second", rate(always(func(s sample) int { return s.Pods }))),
		{title: "Calls per second", lines: []series{
			{"answered", blue, rate(always(func(s sample) int { return s.Calls }))},
			{"with an error", red, rate(always(func(s sample) int { return s.Errors }))},
		}},
		latencies("Publish: latency in ms", s, func(s sample) *interval { return s.Publish }),
		latencies("Unpublish: latency in ms", s, func(s sample) *interval { return s.Unpublish }),
		{title: "On the node", whole: true, lines: []series{
			{"pods", orange, points(s, always(func(s sample) int { return s.Running }))},
			{"mounted volumes", blue, points(s, always(func(s sample) int { return s.Mounted }))},
		}},
		{title: "Volumes retained", whole: true, lines: []series{
			{"retained", blue, points(s, always(func(s sample) int { return s.Retained }))},
		}},
		{title: "Volumes gone so far", whole: true, lines: []series{
			{"expired", blue, points(s, always(func(s sample) int { return s.Expired }))},
			{"evicted", orange, points(s, always(func(s sample) int { return s.Evicted }))},
		}},
		x.diskChart("Free space in MiB", 1<<20, false, func(d diskSample) (uint64, uint64) { return d.FreeBytes, d.TotalBytes }),
		x.diskChart("Free inodes", 1, true, func(d diskSample) (uint64, uint64) { return d.FreeInodes, d.TotalInodes }),
		x.pressureChart(),
		{title: "Driver: memory in MiB", lines: []series{
			{"RSS", blue, points(s, ofDriver(func(d driverSample) float64 { return float64(d.RSSBytes) / (1 << 20) }))},
			{"anonymous", orange, points(s, ofDriver(func(d driverSample) float64 { return float64(d.RSSAnonBytes) / (1 << 20) }))},
		}},
		single("Driver: CPU seconds per second", rate(ofDriver(func(d driverSample) float64 { return d.CPUSeconds }))),
		{title: "Driver: threads", whole: true, lines: []series{
			{"threads", blue, points(s, ofDriver(func(d driverSample) float64 { return float64(d.Threads) }))},
		}},
		{title: "Violations so far", whole: true, lines: []series{
			{"violations", red, points(s, always(func(s sample) int { return s.Violations }))},
		}},
	}
	for i := range list {
		list[i].width, list[i].faults = x.Seconds, x.FaultSpans
	}
	return list
}

// value is what a line shows of a sample, if the sample has it.
type value func(sample) (float64, bool)

func always(of func(sample) int) value {
	return func(s sample) (float64, bool) { return float64(of(s)), true }
}

func ofDriver(of func(driverSample) float64) value {
	return func(s sample) (float64, bool) {
		if s.Driver == nil {
			return 0, false
		}
		return of(*s.Driver), true
	}
}

func ofDisk(of func(diskSample) float64) value {
	return func(s sample) (float64, bool) {
		if s.Disk == nil {
			return 0, false
		}
		return of(*s.Disk), true
	}
}

// single is a chart of a single line.
func single(title string, line plotter.XYs) chart {
	return chart{title: title, lines: []series{{title, blue, line}}}
}

func latencies(title string, samples []sample, of func(sample) *interval) chart {
	line := func(quantile func(*interval) float64) plotter.XYs {
		return points(samples, func(s sample) (float64, bool) {
			i := of(s)
			if i == nil {
				return 0, false
			}
			return quantile(i), true
		})
	}
	return chart{title: title, log: true, lines: []series{
		{"p99", orange, line(func(i *interval) float64 { return i.P99Millis })},
		{"p50", blue, line(func(i *interval) float64 { return i.P50Millis })},
	}}
}

// diskChart shows what is free, and the headroom; or only the change of it, if
// the run's part would be invisible beside all that the disk has.
func (x *Result) diskChart(title string, unit float64, whole bool, of func(diskSample) (free, total uint64)) chart {
	line := points(x.Samples, ofDisk(func(d diskSample) float64 {
		free, _ := of(d)
		return float64(free) / unit
	}))
	c := single(title, line)
	c.whole = whole
	if len(line) == 0 {
		return c
	}
	var total float64
	for _, s := range x.Samples {
		if s.Disk != nil {
			_, n := of(*s.Disk)
			total = max(total, float64(n)/unit)
		}
	}
	_, _, low, high := plotter.XYRange(line)
	if high-low < visibleShare*total {
		first := line[0].Y
		for i := range line {
			line[i].Y -= first
		}
		c.note = fmt.Sprintf("change from %.0f", first)
		return c
	}
	c.limit, c.top = x.Workload.Headroom*total, total
	return c
}

func (x *Result) pressureChart() chart {
	c := single("Pressure factor", points(x.Samples, ofDisk(func(d diskSample) float64 { return d.Pressure })))
	c.top = 1
	return c
}

// points is a value over time, where there is one.
func points(samples []sample, of value) plotter.XYs {
	var line plotter.XYs
	for _, s := range samples {
		if v, ok := of(s); ok {
			line = append(line, plotter.XY{X: s.Seconds, Y: v})
		}
	}
	return line
}

// rates is how fast a value grows over time, each taken over a span at least.
func rates(samples []sample, span float64, of value) plotter.XYs {
	var line plotter.XYs
	var before plotter.XY
	for i, now := range points(samples, of) {
		if i > 0 && now.X-before.X < span {
			continue
		}
		if i > 0 {
			line = append(line, plotter.XY{X: now.X, Y: (now.Y - before.Y) / (now.X - before.X)})
		}
		before = now
	}
	return line
}
