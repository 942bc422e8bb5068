package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/plotter"
)

// leastSpan is the shortest time in seconds that a rate is taken over: the last
// sample may come right after the one before it.
const leastSpan = 0.1

// curves are the charts of a run, in the order of the page.
func curves(s *stats, width float64) []chart {
	samples := s.samples
	list := []chart{
		{title: "Calls per second", lines: []series{
			{"answered", blue, rates(samples, always(func(s sample) int { return s.Calls }))},
			{"with an error", red, rates(samples, always(func(s sample) int { return s.Errors }))},
		}},
		count("Violations so far", red, samples, func(s sample) int { return s.Violations }),
		latencies("Publish: latency in ms", samples, func(s sample) *interval { return s.Publish }),
		latencies("Unpublish: latency in ms", samples, func(s sample) *interval { return s.Unpublish }),
		count("Volumes mounted", blue, samples, func(s sample) int { return s.Mounted }),
		count("Volumes retained", blue, samples, func(s sample) int { return s.Retained }),
		{title: "The daemon's memory in MiB", lines: []series{
			{"RSS", blue, points(samples, ofDaemon(func(d daemonSample) float64 { return float64(d.RSSBytes) / (1 << 20) }))},
			{"of it anonymous", orange, points(samples, ofDaemon(func(d daemonSample) float64 { return float64(d.RSSAnonBytes) / (1 << 20) }))},
		}},
		{title: "The daemon's CPU time in seconds per second", lines: []series{
			{"user and system", blue, rates(samples, ofDaemon(func(d daemonSample) float64 { return d.CPUSeconds }))},
		}},
		{title: "The daemon's threads", whole: true, lines: []series{
			{"threads", blue, points(samples, ofDaemon(func(d daemonSample) float64 { return float64(d.Threads) }))},
		}},
		count("Pods over", blue, samples, func(s sample) int { return s.Pods }),
		diskSpace(samples),
		diskInodes(samples),
	}
	for i := range list {
		list[i].width, list[i].kills = width, s.marks
	}
	return list
}

// value is what a line shows of a sample, if the sample has it.
type value func(sample) (float64, bool)

func always(of func(sample) int) value {
	return func(s sample) (float64, bool) { return float64(of(s)), true }
}

func ofDaemon(of func(daemonSample) float64) value {
	return func(s sample) (float64, bool) {
		if s.Daemon == nil {
			return 0, false
		}
		return of(*s.Daemon), true
	}
}

// count is a chart of a single number.
func count(title string, c color.RGBA, samples []sample, of func(sample) int) chart {
	return chart{title: title, whole: true, lines: []series{{title, c, points(samples, always(of))}}}
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
		{"p50", blue, line(func(i *interval) float64 { return i.P50Millis })},
		{"p99", orange, line(func(i *interval) float64 { return i.P99Millis })},
	}}
}

// diskSpace and diskInodes show a change, as what a run uses would be invisible
// beside what the disk has.
func diskSpace(samples []sample) chart {
	return diskChange(samples, "Free disk space: change in MiB (%.1f GiB at first)", 1<<30, 1<<20,
		func(d diskSample) float64 { return float64(d.FreeBytes) })
}

func diskInodes(samples []sample) chart {
	c := diskChange(samples, "Free inodes: change (%.0f at first)", 1, 1,
		func(d diskSample) float64 { return float64(d.FreeInodes) })
	c.whole = true
	return c
}

func diskChange(samples []sample, title string, titleUnit, unit float64, of func(diskSample) float64) chart {
	var first float64
	for _, s := range samples {
		if s.Disk != nil {
			first = of(*s.Disk)
			break
		}
	}
	line := points(samples, func(s sample) (float64, bool) {
		if s.Disk == nil {
			return 0, false
		}
		return (of(*s.Disk) - first) / unit, true
	})
	return chart{title: fmt.Sprintf(title, first/titleUnit), lines: []series{{"free", blue, line}}}
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

// rates is how fast a value grows over time.
func rates(samples []sample, of value) plotter.XYs {
	var line plotter.XYs
	var before plotter.XY
	for i, now := range points(samples, of) {
		if span := now.X - before.X; i > 0 && span >= leastSpan {
			line = append(line, plotter.XY{X: now.X, Y: (now.Y - before.Y) / span})
		} else if i > 0 {
			continue
		}
		before = now
	}
	return line
}
