package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/katbox/katbox/soak/internal/launch"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o, err := parseOptions([]string{"--daemon", self})
	if err != nil || o.rounds != 5 || !slices.Equal(o.retained, []int{0, 10_000, 100_000, 1_000_000}) {
		t.Errorf("the defaults: %+v, %v", o, err)
	}
	// What is said itself counts more than the preset.
	o, err = parseOptions([]string{"--daemon", self, "--preset", "quick", "--held", "7,9", "--json", "x"})
	if err != nil || o.rounds != 2 || !slices.Equal(o.held, []int{7, 9}) || !slices.Equal(o.callers, []int{1, 8}) {
		t.Errorf("quick: %+v, %v", o, err)
	}
	if want := []string{"--daemon " + self, "--held 7,9", "--preset quick"}; !slices.Equal(slices.Sorted(slices.Values(o.unpinned)), want) {
		t.Errorf("flags %q, want %q", o.unpinned, want)
	}
	empty := filepath.Join(t.TempDir(), "empty.md")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]string{
		{"what"}, {"--odd"}, {"--preset", "odd"}, {"--callers", "0"}, {"--held", "-1"}, {"--retained", "5,-5"}, {"--at", "0"}, {"--peak",
			"-1"}, {"--writing", "-1"}, {"--logs", "-1"},
		{"--rounds", "0"}, {"--round", "0s"}, {"--idle", "0s"}, {"--due", "-1"}, {"--burst", "-1"}, {"--due-for", "0s"},
		{"--daemon", self + "-missing"}, {"--readme", empty}, {"--readme", empty + "-missing"},
	} {
		if o, err := parseOptions(append([]string{"--daemon", self}, bad...)); !errors.Is(err, launch.ErrUsage) {
			t.Errorf("%q: %+v, %v; want wrong usage", bad, o, err)
		}
	}
}

func TestSpots(t *testing.T) {
	t.Parallel()
	o := options{callers: []int{1, 8}, held: []int{0, 50}, retained: []int{0, 70}, at: 8, writing: 3, logs: 5, peak: 90}
	want := []spot{{Callers: 1}, {Callers: 8}, {Callers: 8, Held: 50}, {Callers: 8, Retained: 70}, {Callers: 3, Writing: true},
		{Callers: 5, Printing: true}, {Callers: 8, Peak: 90}}
	if got := o.spots(); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
