package main

import (
	"fmt"
	"strings"

	"github.com/katbox/katbox/soak/internal/readme"
)

// readmePart is the name of the part of a page where the tables are.
const readmePart = "bench"

// markdown has the tables, for a page.
func (x *result) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n", x.heading())
	for _, s := range x.sheets() {
		fmt.Fprintf(&b, "\n%s:\n\n%s\n", s.title, s.markdown())
	}
	if x.marked() {
		fmt.Fprintf(&b, "\n\\* %s\n", note)
	}
	return b.String()
}

func (s sheet) markdown() string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(s.head)
	b.WriteString("|" + strings.Repeat("---:|", len(s.head)) + "\n")
	for _, cells := range s.rows {
		escaped := make([]string, len(cells))
		for i, cell := range cells {
			escaped[i] = strings.ReplaceAll(cell, "*", `\*`)
		}
		line(escaped)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (x *result) writeReadme(path string) error {
	if err := readme.Write(path, readmePart, x.markdown()); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}
