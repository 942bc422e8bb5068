package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// callHead is the head of callRows.
var callHead = []string{"call", "sent", "OK", "p50", "p90", "p99", "max", "errors"}

// callRows has a row for each method that was called, and one for the calls
// with bad input if there were any.
func (x *Result) callRows() [][]string {
	var rows [][]string
	for _, m := range x.Methods {
		if m.Calls == 0 {
			continue
		}
		rows = append(rows, []string{
			string(m.Method), fmt.Sprint(m.Calls), fmt.Sprint(m.Codes[codes.OK.String()]),
			short(m.P50Millis), short(m.P90Millis), short(m.P99Millis), short(m.MaxMillis), errorsByCode(m.Codes),
		})
	}
	if b := x.BadInput; b.Calls > 0 {
		rows = append(rows, []string{
			"with bad input", fmt.Sprint(b.Calls), fmt.Sprint(b.Codes[codes.OK.String()]), "", "", "", "", errorsByCode(b.Codes),
		})
	}
	return rows
}

// group is a part of the summary: lines that belong together.
type group struct {
	Title string `json:"title"`
	Lines []line `json:"lines"`
}

// line is one line of the summary.
type line struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Bad says that the value should not be so.
	Bad bool `json:"bad"`
}

// groups has everything that is not about single calls.
func (x *Result) groups() []group {
	list := []group{x.workGroup(), x.deadlineGroup(), x.driverGroup()}
	if x.Reading != (reading{}) {
		list = append(list, x.readingGroup())
	}
	if len(x.Faults) > 0 {
		list = append(list, x.faultGroup())
	}
	return append(list, x.promiseGroup())
}

func (x *Result) workGroup() group {
	s := x.Summary
	return group{"the work", []line{
		plain("took", long(x.Seconds)),
		plain("pods over", fmt.Sprintf("%d of %d", s.Pods, x.Workload.Pods)),
		plain("pods per second", fmt.Sprintf("%.1f", s.PodsPerSecond)),
		number("containers started", s.Containers),
		number("volumes", s.Volumes),
		number("calls", s.Calls),
		plain("calls per second", fmt.Sprintf("%.1f", s.CallsPerSecond)),
		number("calls doubled", s.Doubled),
		number("calls cancelled", s.Cancelled),
		number("calls reordered", s.Reordered),
		number("volumes filled to their limit", s.Overfilled),
	}}
}

func (x *Result) deadlineGroup() group {
	d := x.Deadlines
	g := group{"deadlines", []line{
		number("data seen just before the deadline", d.Seen),
		number("expired in time", d.Expired),
		number("evicted by pressure", d.Evicted),
		number("removed by a person", d.Removed),
		number("gone because of others of their owner", d.Repeated),
		number("attached by another pod", d.Attached),
		number("not due when the run ended", d.Following),
		plain("gone after the deadline: p50", short(d.LateP50Millis)),
		plain("gone after the deadline: p99", short(d.LateP99Millis)),
		plain("gone after the deadline: max", short(d.LateMaxMillis)),
	}}
	if d.LowestPressure != nil {
		g.Lines = append(g.Lines, plain("lowest pressure factor", fmt.Sprintf("%.2f", *d.LowestPressure)))
	}
	return g
}

func (x *Result) driverGroup() group {
	d := x.Driver
	return group{"the driver", []line{
		plain("CPU time", short(d.CPUSeconds*1e3)),
		plain("CPU time for each call", short(d.CPUMillisPerCall)),
		plain("memory at its peak (RSS)", mebibytes(d.PeakRSSBytes)),
		number("threads at their peak", d.PeakThreads),
	}}
}

func (x *Result) readingGroup() group {
	r := x.Reading
	return group{"read beside", []line{
		number("lists of volumes", r.Lists),
		number("visits to volumes", r.Volumes),
		number("files and parts of files", r.Files),
		number("tars", r.Tars),
		plain("bytes", mebibytes(r.Bytes)),
		number("ended because the volume went", r.Ended),
		number("refused, as they should be", r.Refused),
	}}
}

func (x *Result) faultGroup() group {
	g := group{Title: "faults done of planned"}
	for _, f := range x.Faults {
		// A fault that never came has proven nothing.
		g.Lines = append(g.Lines, line{
			Name: string(f.Kind), Value: fmt.Sprintf("%d of %d", f.Done, f.Planned), Bad: f.Done < f.Planned,
		})
	}
	return g
}

// promiseGroup says of each promise whether it was kept. A run that did not
// come to its end has not proven it.
func (x *Result) promiseGroup() group {
	kept := "kept"
	if x.Unproven != "" {
		kept = "not broken so far"
	}
	g := group{Title: "promises"}
	for _, p := range x.Promises {
		l := line{Name: string(p.Promise), Value: kept}
		if p.Broken > 0 {
			l.Value, l.Bad = plural(p.Broken, "violation"), true
		}
		g.Lines = append(g.Lines, l)
	}
	return g
}

func number(name string, n int) line { return line{Name: name, Value: fmt.Sprint(n)} }
func plain(name, value string) line  { return line{Name: name, Value: value} }

// plural is a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// errorsByCode lists the codes of errors with their numbers, by name.
func errorsByCode(counts map[string]int) string {
	var list []string
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		if code != codes.OK.String() {
			list = append(list, fmt.Sprintf("%s %d", code, counts[code]))
		}
	}
	return strings.Join(list, ", ")
}

// short is a time in milliseconds, with three digits or so.
func short(millis float64) string {
	d := time.Duration(millis * float64(time.Millisecond))
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	default:
		return d.Round(10 * time.Microsecond).String()
	}
}

// long is a time in seconds, without needless digits.
func long(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(100 * time.Millisecond).String()
}

// mebibytes is a size with one digit after the point.
func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
