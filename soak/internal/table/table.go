// Package table lines the cells of a table up for a terminal.
package table

import (
	"strings"
	"unicode/utf8"
)

// gap is between two columns.
const gap = "  "

// Text is a table with a line for each row, below its head if that has any text. All rows have as
// many cells as the head. Cells are aligned to the right, except in the columns left, which count
// from 0.
func Text(head []string, rows [][]string, left ...int) string {
	lines := rows
	if strings.Join(head, "") != "" {
		lines = append([][]string{head}, rows...)
	}
	widths := make([]int, len(head))
	for _, cells := range lines {
		for i, cell := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	toLeft := make([]bool, len(head))
	for _, column := range left {
		toLeft[column] = true
	}
	var b strings.Builder
	for n, cells := range lines {
		var line strings.Builder
		for i, cell := range cells {
			if i > 0 {
				line.WriteString(gap)
			}
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if toLeft[i] {
				line.WriteString(cell + padding)
			} else {
				line.WriteString(padding + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		if n == 0 && len(lines) > len(rows) {
			for i, width := range widths {
				if i > 0 {
					b.WriteString(gap)
				}
				b.WriteString(strings.Repeat("─", width))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// Wrap breaks a text between words into lines of at most width characters. A word that is longer
// has a line of its own.
func Wrap(text string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
