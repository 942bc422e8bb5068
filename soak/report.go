package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// mostStories is how many stories are told.
const mostStories = 10

// report prints the tables and the violations' stories. Nothing may run any
// more that changes the numbers.
func report(out io.Writer, o options, s *stats, f *findings, took time.Duration) {
	fmt.Fprintf(out, "\n%s\n\n%s\n", callTable(s), summaryTable(s, f, took))
	told := stories(f.all())
	for i, one := range told[:min(mostStories, len(told))] {
		tell(out, i+1, one)
	}
	if len(told) > mostStories {
		fmt.Fprintf(out, "\n... and %d more stories like these\n", len(told)-mostStories)
	}
	if f.sum() > 0 {
		fmt.Fprintf(out, "\nfor the same decisions: soak %s\n", again(o))
	}
}

// callTable has a line for each method.
func callTable(s *stats) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	right := []table.ColumnConfig{{Number: 8, WidthMax: 60}}
	for column := 2; column <= 7; column++ {
		right = append(right, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	t.AppendHeader(row(callHead...))
	for _, cells := range callRows(s) {
		t.AppendRow(row(cells...))
	}
	return t.Render()
}

// summaryTable has everything that is not about single calls.
func summaryTable(s *stats, f *findings, took time.Duration) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight}})
	for _, group := range summaryLines(s, f, took) {
		for _, l := range group {
			t.AppendRow(row(l.Name, l.Value))
		}
		t.AppendSeparator()
	}
	return t.Render()
}

func row(cells ...string) table.Row {
	r := make(table.Row, len(cells))
	for i, cell := range cells {
		r[i] = cell
	}
	return r
}

// story is a violation and how often the same promise was broken to the same
// volume. The first time tells most about the cause.
type story struct {
	violation
	times int
	// rank is how many stories of the same promise are older.
	rank int
}

// stories makes one story of what happened to one volume again and again, so
// that the few stories of a report are different ones.
func stories(all []violation) []story {
	type key struct {
		promise promise
		volume  string
		what    string
	}
	var list []story
	known := make(map[key]int)
	for _, v := range all {
		k := key{promise: v.promise, volume: v.volume}
		if v.volume == "" {
			k.what = v.what
		}
		i, ok := known[k]
		if !ok {
			i = len(list)
			known[k] = i
			list = append(list, story{violation: v})
		}
		list[i].times++
	}
	// One of each promise comes first, then the second of each, and so on. But
	// a dead daemon explains all the rest.
	rank := map[promise]int{brokenDaemon: -mostStories}
	for i := range list {
		list[i].rank = rank[list[i].promise]
		rank[list[i].promise]++
	}
	slices.SortStableFunc(list, func(a, b story) int { return cmp.Compare(a.rank, b.rank) })
	return list
}

// tell prints the story of one violation.
func tell(out io.Writer, number int, v story) {
	fmt.Fprintf(out, "\nviolation %d at %s: %s\n", number, v.at.Format(clock), v.promise)
	if v.volume != "" {
		fmt.Fprintf(out, "  volume %s\n  pod    %s\n", v.volume, v.pod)
	}
	fmt.Fprintf(out, "  %s\n", strings.ReplaceAll(v.what, "\n", "\n  "))
	for _, line := range v.calls {
		fmt.Fprintf(out, "    %s\n", line)
	}
	if v.times > 1 {
		fmt.Fprintf(out, "  and %d times more\n", v.times-1)
	}
}

// again is the command line that makes the same decisions.
func again(o options) string {
	return fmt.Sprintf("--seed %d --pods %d --volumes %d --parallel %d --lifespan %s --repeat %g --cancel %g --kills %d",
		o.seed, o.pods, o.volumes, o.parallel, o.lifespan, o.repeat, o.cancel, o.kills)
}
