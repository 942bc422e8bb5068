package nfs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var span = regexp.MustCompile("`([^`]+)`")

// TestOptionsOfTheDocument: each option in the table of the page for those who come from another driver is accepted, or
// refused, as its row says.
func TestOptionsOfTheDocument(t *testing.T) {
	const page = "../../../../deploy/docs/zadara.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| option | with Katbox |\n|---|---|\n")
	if !found {
		t.Fatalf("%s has no table of options", page)
	}
	rows, accepted, refused := 0, 0, 0
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 {
			break
		}
		rows++
		for _, found := range span.FindAllStringSubmatch(cells[1], -1) {
			option := found[1]
			_, err := parseOptions(split(option))
			refusal := strings.HasPrefix(strings.TrimSpace(cells[2]), "refused")
			if refusal != (err != nil) {
				t.Errorf("%s: %v; the page says %q", option, err, strings.TrimSpace(cells[2]))
			}
			if refusal {
				refused++
			} else {
				accepted++
			}
		}
	}
	if rows < 10 || accepted < 20 || refused < 5 {
		t.Errorf("%d rows with %d options that are accepted and %d that are refused: is that the table?", rows, accepted, refused)
	}
}
