package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/katbox/katbox/soak/internal/history"
)

func TestStoriesAreDifferentOnes(t *testing.T) {
	list := storiesOf([]violation{
		{Promise: history.AnyOrder, Volume: "a", What: "first"},
		{Promise: history.AnyOrder, Volume: "a", What: "second"},
		{Promise: history.PublishedData, Volume: "a"},
		{Promise: history.AnyOrder, Volume: "b"},
		{Promise: history.NoLeak, What: "x"},
		{Promise: history.NoLeak, What: "y"},
		{Promise: history.AnyOrder, Volume: "a", What: "third"},
		{Promise: history.Lives, What: "died"},
	})
	var got []string
	for _, s := range list {
		got = append(got, fmt.Sprintf("%s %s %d", s.Volume, s.What, s.times))
	}
	want := []string{
		// The driver's death, then one of each promise, in their order, then the others.
		" died 1", "a first 3", "a  1", " x 1", "b  1", " y 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("stories %q, want %q", got, want)
	}
}

func TestStoriesAreLimited(t *testing.T) {
	var f history.Findings
	for i := range mostStories + 3 {
		f.Add(history.NoLeak, nil, strings.Repeat("x", i+1))
		f.Add(history.NoLeak, nil, "x")
	}
	var out bytes.Buffer
	emptyResult(nil, &f).Terminal(&out)
	if got := strings.Count(out.String(), "\nviolation "); got != mostStories {
		t.Errorf("%d stories, want %d", got, mostStories)
	}
	for _, want := range []string{"and 3 more stories", "26 violations", "soak --seed 0", "and 13 times more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
}

func TestTerminalTellsEverything(t *testing.T) {
	var out bytes.Buffer
	smallResult(t).Terminal(&out)
	for _, want := range []string{
		"1 violation, seed 7", "for the same decisions: soak --seed 7 --workload small", "come to its end: interrupted", "/kept/here",
		"violation 1 at 00:00:01.250: published data stays", "volume csi-<script>", "00:00:01.250  NodePublishVolume",
		"with bad input", "InvalidArgument 1", "busy-target", "2 of 3", "3 of 4", "not broken so far", "40.0 MiB", "0.50",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
	out.Reset()
	emptyResult(nil, nil).Terminal(&out)
	if text := out.String(); strings.Contains(text, "decisions") || !strings.Contains(text, "Clean: 0 violations, seed 0") {
		t.Errorf("a clean run's report:\n%s", text)
	}
}

// TestTerminalWidth: a line that is broken by the terminal makes a table
// unreadable.
func TestTerminalWidth(t *testing.T) {
	x := smallResult(t)
	x.Violations = nil
	x.Summary.Calls = 123456789
	for i := range x.Methods {
		x.Methods[i] = methodCalls{
			Method: history.ControllerUnpublish, Calls: 12345678, P50Millis: 123.456, P90Millis: 9876.54, P99Millis: 59990, MaxMillis: 119990,
			Codes: map[string]int{"OK": 12345678, "DeadlineExceeded": 1234567, "ResourceExhausted": 1234567, "FailedPrecondition": 1234567},
		}
	}
	var out bytes.Buffer
	x.Terminal(&out)
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 120 {
			t.Errorf("%d columns, want at most 120: %s", n, line)
		}
	}
}
