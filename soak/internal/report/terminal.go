package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/katbox/katbox/soak/internal/history"
)

// widestErrors is the width of the column with the errors, so that the table
// fits into 120 columns.
const widestErrors = 28

// Terminal prints the tables and the stories of the violations, in 120 columns
// but for the stories.
func (x *Result) Terminal(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n\n%s\n", x.callTable(), x.summaryTable())
	told, more := x.stories()
	for i, one := range told {
		tell(w, i+1, one)
	}
	if more > 0 {
		fmt.Fprintf(w, "\n... and %d more stories like these\n", more)
	}
	fmt.Fprintf(w, "\n%s, seed %d\n", x.headline(), x.Seed)
	if x.Unproven != "" {
		fmt.Fprintf(w, "the run did not come to its end: %s\n", x.Unproven)
	}
	if x.Kept != "" {
		fmt.Fprintf(w, "everything is kept in %s\n", x.Kept)
	}
	if x.Verdict != Clean {
		fmt.Fprintf(w, "for the same decisions: %s\n", x.Command)
	}
}

// callTable has a line for each method.
func (x *Result) callTable() string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	columns := []table.ColumnConfig{{Number: len(callHead), WidthMax: widestErrors, WidthMaxEnforcer: text.WrapSoft}}
	for column := 2; column < len(callHead); column++ {
		columns = append(columns, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	t.AppendHeader(row(callHead...))
	for _, cells := range x.callRows() {
		t.AppendRow(row(cells...))
	}
	return t.Render()
}

// summaryTable has everything that is not about single calls.
func (x *Result) summaryTable() string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight}})
	for _, g := range x.groups() {
		t.AppendRow(row(strings.ToUpper(g.Title), ""))
		for _, l := range g.Lines {
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

// tell prints the story of one violation.
func tell(w io.Writer, number int, v story) {
	fmt.Fprintf(w, "\nviolation %d at %s: %s\n", number, v.At.Format(history.Clock), v.Promise)
	if v.Volume != "" {
		fmt.Fprintf(w, "  volume %s\n  pod    %s\n", v.Volume, v.Pod)
	}
	fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(v.What, "\n", "\n  "))
	for _, line := range v.Story {
		fmt.Fprintf(w, "    %s\n", line)
	}
	if again := v.again(); again != "" {
		fmt.Fprintf(w, "  and %s\n", again)
	}
}

// headline is the verdict in a few words.
func (x *Result) headline() string {
	switch x.Verdict {
	case Violated:
		return plural(x.Summary.Violations, "violation")
	case Unproven:
		return "Nothing is proven"
	default:
		return "Clean: 0 violations"
	}
}
