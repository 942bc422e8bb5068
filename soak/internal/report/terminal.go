package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/katbox/katbox/soak/internal/table"
	"github.com/katbox/katbox/soak/story"
)

// widestErrors is the width of the column with the errors, so that the table
// fits into 120 columns.
const widestErrors = 34

// Terminal prints the tables and the stories of the violations, in 120 columns
// but for the stories.
func (x *Result) Terminal(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n%s", x.callTable(), x.summaryTable())
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

// callTable has a row for each method, and more if its errors need more.
func (x *Result) callTable() string {
	last := len(callHead) - 1
	var rows [][]string
	for _, cells := range x.callRows() {
		errors := table.Wrap(cells[last], widestErrors)
		rows = append(rows, append(cells[:last], errors[0]))
		for _, more := range errors[1:] {
			row := make([]string, len(callHead))
			row[last] = more
			rows = append(rows, row)
		}
	}
	return table.Text(callHead, rows, 0, last)
}

// summaryTable has everything that is not about single calls.
func (x *Result) summaryTable() string {
	var rows [][]string
	for i, g := range x.groups() {
		if i > 0 {
			rows = append(rows, []string{"", ""})
		}
		rows = append(rows, []string{strings.ToUpper(g.Title), ""})
		for _, l := range g.Lines {
			rows = append(rows, []string{"  " + l.Name, l.Value})
		}
	}
	return table.Text([]string{"", ""}, rows, 0)
}

// tell prints the story of one violation.
func tell(w io.Writer, number int, v repeated) {
	fmt.Fprintf(w, "\nviolation %d at %s: %s\n", number, story.Clock(v.At), v.Promise)
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
