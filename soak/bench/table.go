package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/katbox/katbox/soak/internal/table"
)

// sheet is a table before it is known for whom.
type sheet struct {
	title string
	head  []string
	rows  [][]string
}

// sheets are the tables of a result, those without rows left out.
func (x *result) sheets() []sheet {
	var list []sheet
	for _, s := range []sheet{
		x.callSheet(), x.latencySheet(), x.bindSheet(), x.logsSheet(), x.restSheet(), x.listSheet(), x.besideSheet(), x.otherSheet(),
	} {
		if len(s.rows) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// at are the first cells of a row.
func (p point) at() []string {
	retained := count(p.Retained)
	if p.Peak > 0 {
		retained += " after " + count(p.Peak)
	}
	if p.Writing {
		retained += " beside a writer"
	}
	return []string{count(p.Callers), count(p.Held), retained}
}

// flat is how many times more CPU time a call of Katbox takes at a point than with
// nothing held or retained, now or before.
func flat(p point) string {
	if p.Empty == nil {
		return ""
	}
	return times(inTurns(p.Katbox, *p.Empty, cpuPerCall))
}

func cpuPerCall(r round) float64     { return r.CPUMicrosPerCall }
func callsPerSecond(r round) float64 { return r.CallsPerSecond }

func (x *result) callSheet() sheet {
	s := sheet{title: "Calls, Katbox against the floor",
		head: []string{"callers", "held", "retained", "calls/s", "floor", "ratio", "CPU µs/call", "floor", "ratio", "to empty"}}
	for _, p := range x.Points {
		k, f := p.Katbox.Median, p.Floor.Median
		cpu := whole(k.CPUMicrosPerCall)
		if p.Katbox.Busy {
			cpu += "*"
		}
		s.rows = append(s.rows, append(p.at(),
			whole(k.CallsPerSecond), whole(f.CallsPerSecond), times(inTurns(p.Katbox, p.Floor, callsPerSecond)),
			cpu, whole(f.CPUMicrosPerCall), times(inTurns(p.Katbox, p.Floor, cpuPerCall)), flat(p)))
	}
	return s
}

// calls are those that are timed.
var calls = []struct {
	name string
	of   func(round) latency
}{
	{"publish", func(r round) latency { return r.Publish }},
	{"unpublish", func(r round) latency { return r.Unpublish }},
}

func (x *result) latencySheet() sheet {
	s := sheet{title: "How long calls take, in ms",
		head: []string{"callers", "held", "retained", "call", "p50", "floor", "p99", "floor", "ratio", "max", "floor"}}
	for _, p := range x.Points {
		for _, call := range calls {
			k, f := call.of(p.Katbox.Median), call.of(p.Floor.Median)
			s.rows = append(s.rows, append(p.at(), call.name,
				short(k.P50), short(f.P50), short(k.P99), short(f.P99),
				times(inTurns(p.Katbox, p.Floor, func(r round) float64 { return call.of(r).P99 })), short(k.Max), short(f.Max)))
		}
	}
	return s
}

func (x *result) bindSheet() sheet {
	s := sheet{title: "Against a floor that records nothing, times in ms",
		head: []string{"callers", "held", "retained", "calls/s", "bind", "ratio", "CPU µs/call", "bind", "ratio",
			"publish p50", "bind", "ratio", "p99", "bind", "ratio", "max", "bind"}}
	for _, p := range x.Points {
		k, b := p.Katbox.Median, p.Bind.Median
		s.rows = append(s.rows, append(p.at(),
			whole(k.CallsPerSecond), whole(b.CallsPerSecond), times(inTurns(p.Katbox, p.Bind, callsPerSecond)),
			whole(k.CPUMicrosPerCall), whole(b.CPUMicrosPerCall), times(inTurns(p.Katbox, p.Bind, cpuPerCall)),
			short(k.Publish.P50), short(b.Publish.P50), times(inTurns(p.Katbox, p.Bind, func(r round) float64 { return r.Publish.P50 })),
			short(k.Publish.P99), short(b.Publish.P99), times(inTurns(p.Katbox, p.Bind, func(r round) float64 { return r.Publish.P99 })),
			short(k.Publish.Max), short(b.Publish.Max)))
	}
	return s
}

func (x *result) logsSheet() sheet {
	s := sheet{title: "With what containers print, and without, in ms",
		head: []string{"callers", "call", "p50 with", "without", "ratio", "p99 with", "without", "ratio", "CPU µs with", "without", "ratio"}}
	for _, p := range x.Points {
		if p.Logs == nil {
			continue
		}
		for _, call := range calls {
			with, without := call.of(p.Logs.Median), call.of(p.Katbox.Median)
			s.rows = append(s.rows, []string{count(p.Callers), call.name,
				short(with.P50), short(without.P50), times(inTurns(*p.Logs, p.Katbox, func(r round) float64 { return call.of(r).P50 })),
				short(with.P99), short(without.P99), times(inTurns(*p.Logs, p.Katbox, func(r round) float64 { return call.of(r).P99 })),
				whole(p.Logs.Median.CPUMicrosPerCall), whole(p.Katbox.Median.CPUMicrosPerCall), times(inTurns(*p.Logs, p.Katbox, cpuPerCall))})
		}
	}
	return s
}

func (x *result) restSheet() sheet {
	s := sheet{title: "What they use",
		head: []string{"callers", "held", "retained", "RssAnon MiB", "floor", "RSS MiB", "floor", "threads", "floor",
			"idle CPU %", "floor", "ready ms"}}
	for _, p := range x.Points {
		k, f := p.Katbox, p.Floor
		idle := fmt.Sprintf("%.2f", k.IdlePercent)
		if k.Restless {
			idle += "*"
		}
		s.rows = append(s.rows, append(p.at(),
			mebibytes(k.AnonymousBytes), mebibytes(f.AnonymousBytes), mebibytes(k.RSSBytes), mebibytes(f.RSSBytes),
			strconv.Itoa(k.Threads), strconv.Itoa(f.Threads), idle, fmt.Sprintf("%.2f", f.IdlePercent), whole(median(k.ReadyMillis))))
	}
	return s
}

func (x *result) otherSheet() sheet {
	s := sheet{title: "Deadlines", head: []string{"", ""}}
	if l := x.Lateness; l != nil {
		s.rows = append(s.rows,
			[]string{fmt.Sprintf("%s deadlines, %s each second: late by p50 / p99 / max", count(l.Deadlines), count(l.PerSecond)),
				fmt.Sprintf("%s / %s / %s ms", short(l.P50), short(l.P99), short(l.Max))},
			[]string{"of those within a second", fmt.Sprintf("%.2f %%", 100*l.WithinSecond)})
	}
	if b := x.Burst; b != nil {
		s.rows = append(s.rows, []string{fmt.Sprintf("%s empty volumes due at once: gone with the trash / rm -rf", count(b.Volumes)),
			fmt.Sprintf("%s / %s ms, ratio %s", whole(b.Gone), whole(b.Rm), times(b.TimesSlower))})
	}
	return s
}

// print prints the tables for a terminal.
func (x *result) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", x.heading())
	for _, s := range x.sheets() {
		fmt.Fprintf(w, "\n%s\n%s", s.title, s.text())
	}
	if x.marked() {
		fmt.Fprintf(w, "\n* %s\n", note)
	}
}

// heading says how and on what it was measured.
func (x *result) heading() string {
	h := fmt.Sprintf("Medians of %d rounds, %s", x.Rounds, x.Machine)
	if len(x.Flags) > 0 {
		h += ", with " + strings.Join(x.Flags, " ")
	}
	return h
}

// note explains the asterisks.
const note = "it still had work of its own, from its start or the rounds"

// marked reports whether there is an asterisk.
func (x *result) marked() bool {
	return slices.ContainsFunc(x.Points, func(p point) bool { return p.Katbox.Busy || p.Katbox.Restless })
}

// text is for a terminal. The first column has words where it has no head, and all others have numbers.
func (s sheet) text() string {
	if s.head[0] == "" {
		return table.Text(s.head, s.rows, 0)
	}
	return table.Text(s.head, s.rows)
}

// count is a whole number, with commas between thousands.
func count(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

func whole(f float64) string { return count(int(math.Round(f))) }

// short is a time in milliseconds, with as many digits as say something.
func short(ms float64) string {
	switch {
	case ms >= 100:
		return whole(ms)
	case ms >= 10:
		return fmt.Sprintf("%.1f", ms)
	default:
		return fmt.Sprintf("%.2f", ms)
	}
}

// times is a ratio.
func times(r float64) string {
	if math.IsNaN(r) || math.IsInf(r, 0) {
		return "-"
	}
	return fmt.Sprintf("%.2f", r)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }
