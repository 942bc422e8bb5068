package main

import (
	"slices"
	"strings"
	"testing"
)

// TestEachPlatformHasAMark and a source: nobody has to guess what was tried.
func TestEachPlatformHasAMark(t *testing.T) {
	const page = "deploy/docs/platforms.md"
	var head []string
	count := 0
	for line := range strings.Lines(read(t, page)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			head = nil
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if head == nil {
			head = cells
			continue
		}
		mark, source := slices.Index(head, "mark"), slices.Index(head, "source")
		if mark < 0 || source < 0 {
			t.Fatalf("%s: the table with %q has no marks or no sources", page, head)
		}
		if strings.HasPrefix(cells[0], "---") {
			continue
		}
		count++
		if len(cells) != len(head) || !slices.Contains([]string{"tested", "tried in part", "not tried"}, cells[mark]) || cells[source] == "" {
			t.Errorf("%s: %s: the mark has to be tested, tried in part or not tried, and the source has to be named", page, line)
		}
	}
	if count < 30 {
		t.Errorf("%s has only %d rows", page, count)
	}
}
