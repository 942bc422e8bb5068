package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// callHead is the head of callRows.
var callHead = []string{"call", "sent", "OK", "p50", "p90", "p99", "max", "errors"}

// callRows has a row for each method.
func callRows(s *stats) [][]string {
	var rows [][]string
	for _, name := range methods {
		m := s.method(name)
		rows = append(rows, []string{
			string(name), fmt.Sprint(m.calls), fmt.Sprint(m.codes[codes.OK]),
			short(quantile(m.latencies, 0.5)), short(quantile(m.latencies, 0.9)),
			short(quantile(m.latencies, 0.99)), short(quantile(m.latencies, 1)),
			errorsByCode(m.codes),
		})
	}
	return rows
}

// line is one line of the summary.
type line struct {
	Name, Value string
	// Bad says that the value should not be so.
	Bad bool
}

// summaryLines has everything that is not about single calls, in groups.
func summaryLines(s *stats, f *findings, took time.Duration) [][]line {
	number := func(name string, n int) line { return line{Name: name, Value: fmt.Sprint(n)} }
	broken := func(name string, n int) line { return line{Name: name, Value: fmt.Sprint(n), Bad: n > 0} }
	span := func(name string, d time.Duration) line { return line{Name: name, Value: short(d)} }
	kept := make([]line, 0, len(promises))
	for _, p := range promises {
		kept = append(kept, broken(string(p), f.number(p)))
	}
	return [][]line{
		{
			{Name: "took", Value: took.Round(100 * time.Millisecond).String()},
			number("pods", s.pods),
			number("volumes", s.volumes),
			number("calls doubled", s.doubled),
			number("calls cancelled", s.cancelled),
			number("kills", s.kills),
		},
		{
			number("markers seen just before their deadline", s.seen),
			number("volumes expired in time", s.expired),
			span("gone after the deadline: p50", quantile(s.late, 0.5)),
			span("gone after the deadline: max", quantile(s.late, 1)),
		},
		{
			span("the daemon's CPU time", s.consumed.cpu),
			span("the daemon's CPU time for each call", perCall(s)),
			{Name: "the daemon's memory at its peak", Value: mebibytes(s.consumed.peak)},
			number("the daemon's threads at their peak", s.consumed.threads),
		},
		kept,
		{broken("violations", f.sum())},
	}
}

// errorsByCode lists the codes of errors with their numbers, by name.
func errorsByCode(counts map[codes.Code]int) string {
	var list []string
	for code, n := range counts {
		if code != codes.OK {
			list = append(list, fmt.Sprintf("%s %d", code, n))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// short is a duration with three digits or so.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	default:
		return d.Round(10 * time.Microsecond).String()
	}
}

// perCall is the daemon's CPU time with everything that it did, even expiring
// volumes and starting again, for each call.
func perCall(s *stats) time.Duration {
	calls := s.sums().calls
	if calls == 0 {
		return 0
	}
	return s.consumed.cpu / time.Duration(calls)
}

// mebibytes is a size with one digit after the point.
func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
