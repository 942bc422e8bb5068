package main

import (
	"fmt"
	"os"
	"strings"
)

// The lines between which the tables are.
const (
	readmeBegin = "<!-- bench -->"
	readmeEnd   = "<!-- /bench -->"
)

// checkReadme makes sure that there is a place for the tables.
func checkReadme(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w: --readme: %w", errUsage, err)
	}
	_, err = between(string(text), "")
	return err
}

// between replaces what is between the two lines.
func between(text, tables string) (string, error) {
	before, rest, found := strings.Cut(text, "\n"+readmeBegin+"\n")
	_, after, closed := strings.Cut(rest, readmeEnd+"\n")
	if !found || !closed || strings.Contains(after, readmeBegin) {
		return "", fmt.Errorf("%w: --readme: it has to have the lines %s and %s, once each and in this order", errUsage, readmeBegin, readmeEnd)
	}
	return before + "\n" + readmeBegin + "\n" + tables + readmeEnd + "\n" + after, nil
}

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
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	changed, err := between(string(text), x.markdown())
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}
