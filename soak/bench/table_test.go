package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/katbox/katbox/soak/internal/launch"
	"github.com/katbox/katbox/soak/internal/readme"
)

// example is a result with round numbers.
func example() *result {
	measuredAs := func(perSecond, cpu float64) measured {
		m := round{CallsPerSecond: perSecond, CPUMicrosPerCall: cpu, Publish: latency{1.5, 25, 1234}, Unpublish: latency{1, 20, 200}}
		return measured{Rounds: []round{m}, Median: m, RSSBytes: 30 << 20, AnonymousBytes: 20 << 20, Threads: 12,
			IdlePercent: 0.25, ReadyMillis: []float64{50, 40, 60}}
	}
	empty, bare := measuredAs(1400, 300), measuredAs(2500, 100)
	looked := &lists{Questions: []question{{"first page", 500, latency{5, 10, 100}}}, PagesPerSecond: 1234.5,
		Alone: measuredAs(1200, 300), Beside: measuredAs(1100, 330)}
	return &result{
		Machine: machineInfo{Date: "2026-11-21", Cores: 2, Kernel: "6.18", FileSystem: "ext4"}, Rounds: 1,
		Points: []point{
			{spot: spot{Callers: 8}, Katbox: measuredAs(1500, 300), Floor: measuredAs(2000, 200), Bind: bare, Logs: &empty},
			{spot: spot{Callers: 8, Retained: 1_000_000}, Katbox: measuredAs(1200, 330), Floor: measuredAs(0, 0), Bind: bare, Empty: &empty,
				Lists: looked},
			{spot: spot{Callers: 8, Peak: 1_000_000}, Katbox: measuredAs(1400, 360), Floor: measuredAs(2000, 200), Bind: bare, Empty: &empty},
		},
		Lateness: &lateness{PerSecond: 1000, Deadlines: 20_000, P50: 2, P99: 10, Max: 120, WithinSecond: 1},
		Burst:    &burst{Volumes: 10_000, Gone: 3000, Rm: 1000, TimesSlower: 3},
	}
}

func TestSheets(t *testing.T) {
	t.Parallel()
	x := example()
	x.Points[1].Katbox.Busy, x.Points[1].Katbox.Restless = true, true
	want := map[string][]string{
		"Calls, Katbox against the floor": {
			"8 0 0 1,500 2,000 0.75 300 200 1.50 ",
			"8 0 1,000,000 1,200 0 - 330* 0 - 1.10",
			"8 0 0 after 1,000,000 1,400 2,000 0.70 360 200 1.80 1.20",
		},
		"How long calls take, in ms": {
			"8 0 0 publish 1.50 1.50 25.0 25.0 1.00 1,234 1,234",
			"8 0 0 unpublish 1.00 1.00 20.0 20.0 1.00 200 200",
			"8 0 1,000,000 publish 1.50 1.50 25.0 25.0 1.00 1,234 1,234",
			"8 0 1,000,000 unpublish 1.00 1.00 20.0 20.0 1.00 200 200",
			"8 0 0 after 1,000,000 publish 1.50 1.50 25.0 25.0 1.00 1,234 1,234",
			"8 0 0 after 1,000,000 unpublish 1.00 1.00 20.0 20.0 1.00 200 200",
		},
		"With what containers print, and without, in ms": {
			"8 publish 1.50 1.50 1.00 25.0 25.0 1.00 300 300 1.00",
			"8 unpublish 1.00 1.00 1.00 20.0 20.0 1.00 300 300 1.00",
		},
		"Against a floor that records nothing, times in ms": {
			"8 0 0 1,500 2,500 0.60 300 100 3.00 1.50 1.50 1.00 25.0 25.0 1.00 1,234 1,234",
			"8 0 1,000,000 1,200 2,500 0.48 330 100 3.30 1.50 1.50 1.00 25.0 25.0 1.00 1,234 1,234",
			"8 0 0 after 1,000,000 1,400 2,500 0.56 360 100 3.60 1.50 1.50 1.00 25.0 25.0 1.00 1,234 1,234",
		},
		"What they use": {
			"8 0 0 20.0 20.0 30.0 30.0 12 12 0.25 0.25 50",
			"8 0 1,000,000 20.0 20.0 30.0 30.0 12 12 0.25* 0.25 50",
			"8 0 0 after 1,000,000 20.0 20.0 30.0 30.0 12 12 0.25 0.25 50",
		},
		"How long lists take, in ms": {"1,000,000 first page 500 5.00 10.0 100"},
		"Calls beside a client that pages through all volumes, in ms": {
			"8 1,000,000 1,235 publish 25.0 25.0 1.00",
			"8 1,000,000 1,235 unpublish 20.0 20.0 1.00",
		},
		"Deadlines": {
			"20,000 deadlines, 1,000 each second: late by p50 / p99 / max 2.00 / 10.0 / 120 ms",
			"of those within a second 100.00 %",
			"10,000 empty volumes due at once: gone with the trash / rm -rf 3,000 / 1,000 ms, ratio 3.00",
		},
	}
	got := map[string][]string{}
	for _, s := range x.sheets() {
		for _, cells := range s.rows {
			if len(cells) != len(s.head) {
				t.Errorf("%s: %d cells below %d", s.title, len(cells), len(s.head))
			}
			got[s.title] = append(got[s.title], strings.Join(cells, " "))
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestWithoutDeadlines: what was left out has no table, and nothing is explained
// that is not there.
func TestWithoutDeadlines(t *testing.T) {
	t.Parallel()
	x := example()
	x.Lateness, x.Burst = nil, nil
	var out bytes.Buffer
	x.print(&out)
	for _, absent := range []string{"Deadlines", note} {
		if strings.Contains(out.String(), absent) {
			t.Errorf("%q is in %s", absent, &out)
		}
	}
	x.Points[0].Katbox.Busy = true
	x.print(&out)
	if !strings.Contains(out.String(), "300*") || !strings.Contains(out.String(), note) || !strings.Contains(out.String(), "CPU µs/call") {
		t.Errorf("printed: %s", &out)
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567"} {
		if got := count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestReadme(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "README.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n\n<!-- bench -->\nold\n<!-- /bench -->\n\nafter\n")
	x := example()
	x.Flags, x.Points[0].Katbox.Restless = []string{"--rounds 1"}, true
	// The second time replaces what the first one wrote.
	for range 2 {
		if err := errors.Join(readme.Check(path, readmePart), x.writeReadme(path)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"before\n\n<!-- bench -->\nMedians of 1 rounds, 2026-11-21, 2 cores, Linux 6.18, ext4, with --rounds 1.\n\nCalls, Katbox",
		"\n| 8 | 0 | 0 | 1,500 | 2,000 | 0.75 | 300 | 200 | 1.50 |  |\n", `0.25\*`, `\* ` + note, "\n<!-- /bench -->\n\nafter\n",
	} {
		if strings.Count(string(text), part) != 1 {
			t.Errorf("%q is not there once: %s", part, text)
		}
	}
	if strings.Contains(string(text), "old") {
		t.Errorf("what was there before stayed: %s", text)
	}
	for _, bad := range []string{"", "\n<!-- bench -->\n", "<!-- /bench -->\n\n<!-- bench -->\n",
		"\n<!-- bench -->\n<!-- /bench -->\n<!-- bench -->\n<!-- /bench -->\n"} {
		write(bad)
		if err := readme.Check(path, readmePart); !errors.Is(err, launch.ErrUsage) {
			t.Errorf("%q: %v, want wrong usage", bad, err)
		}
	}
}

func TestJSONReturns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.json")
	x := example()
	if err := x.writeJSON(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var back result
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(&back, x) {
		t.Errorf("%+v, %v, want %+v", back, err, x)
	}
}
