package terminal

import (
	"io"
	"strings"
)

// columnGap is between the columns.
const columnGap = "  "

// Table writes rows in columns. It holds the rows until Flush; a column is as wide as its longest
// cell so far, so that a list of any length can be written page by page.
type Table struct {
	w      io.Writer
	widths []int
	rows   [][]string
}

// NewTable returns a table whose first row is the header, if it has one.
func NewTable(w io.Writer, header ...string) *Table {
	t := &Table{w: w}
	if len(header) > 0 {
		t.Row(header...)
	}
	return t
}

// Row adds a row. It cleans the cells.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = Clean(cell)
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], Width(row[i]))
	}
	t.rows = append(t.rows, row)
}

// Flush writes the rows that were added since the last Flush.
func (t *Table) Flush() error {
	var b strings.Builder
	for _, row := range t.rows {
		for i, cell := range row[:len(row)-1] {
			b.WriteString(cell + strings.Repeat(" ", t.widths[i]-Width(cell)) + columnGap)
		}
		b.WriteString(row[len(row)-1])
		b.WriteByte('\n')
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.w, b.String())
	return err
}
