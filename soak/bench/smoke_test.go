package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/mounttest"
)

// TestSmoke plays the whole program with the real daemon, with few volumes. That
// those fall due which it prepared without the daemon shows that their records
// were understood: without one, a directory is kept for twelve hours.
func TestSmoke(t *testing.T) {
	mounttest.Need(t)
	bin := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-o", bin, "github.com/katbox/katbox/cmd/katbox", "github.com/katbox/katbox/soak/bench")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// The path of t.TempDir may be too long for a socket.
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		t.Fatal(err)
	}
	defer mounttest.ClearAway(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	readme, written := filepath.Join(bin, "README.md"), filepath.Join(bin, "bench.json")
	if err := os.WriteFile(readme, []byte("\n<!-- bench -->\n<!-- /bench -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// There may be no loop devices here.
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "bench"), "--dir", filepath.Join(dir, "run"), "--disk", "auto",
		"--callers", "1,4", "--at", "4", "--held", "10", "--retained", "100", "--peak", "5000", "--logs", "4", "--rounds", "2", "--round",
		"50ms", "--idle", "100ms", "--settle", "0s",
		"--due", "50", "--due-for", "1s", "--burst", "50", "--json", written, "--readme", readme).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	var x result
	if err := json.Unmarshal(text, &x); err != nil {
		t.Fatal(err)
	}
	if len(x.Points) != 7 || x.Lateness == nil || x.Lateness.Deadlines != 50 || x.Burst == nil ||
		len(x.Burst.GoneMillis) != 2 || len(x.Burst.RmMillis) != 2 {
		t.Fatalf("it has not measured everything: %s", text)
	}
	for _, p := range x.Points {
		if (p.Lists != nil) != (p.Retained > 0) {
			t.Errorf("%+v: lists %+v", p.spot, p.Lists)
		}
		if p.Lists != nil {
			wantLists(t, p.Lists)
		}
		if (p.Logs != nil) != p.Printing {
			t.Errorf("%+v: logs %+v", p.spot, p.Logs)
		}
		all := map[string]measured{"katbox": p.Katbox, "floor": p.Floor, "bind": p.Bind}
		if p.Logs != nil {
			all["logs"] = measured{Rounds: p.Logs.Rounds, Median: p.Logs.Median, ReadyMillis: p.Logs.ReadyMillis, AnonymousBytes: 1, Threads: 1}
		}
		for name, m := range all {
			if len(m.Rounds) != 2 || len(m.ReadyMillis) == 0 || m.AnonymousBytes == 0 || m.Threads == 0 {
				t.Errorf("%+v: %s: %+v", p.spot, name, m)
			}
			for _, r := range append(m.Rounds, m.Median) {
				if r.Calls < 8*p.Callers || r.CallsPerSecond <= 0 || r.CPUMicrosPerCall <= 0 || r.Publish.P50 <= 0 ||
					r.Unpublish.Max < r.Unpublish.P99 {
					t.Errorf("%+v: %s: round %+v", p.spot, name, r)
				}
			}
		}
	}
	if page, err := os.ReadFile(readme); err != nil || len(page) < 1000 {
		t.Errorf("the tables: %v: %s", err, page)
	}
	if _, err := os.Lstat(filepath.Join(dir, "run")); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// wantLists checks that each question was answered, and that someone paged beside the calls. Volumes
// of the rounds are among the answers.
func wantLists(t *testing.T, l *lists) {
	t.Helper()
	if len(l.Questions) != 5 || len(l.Alone.Rounds) != 2 || len(l.Beside.Rounds) != 2 || l.PagesPerSecond <= 0 {
		t.Errorf("lists: %+v", l)
	}
	for _, q := range l.Questions {
		few := strings.Contains(q.For, "one of 1,000")
		if q.Volumes == 0 || (q.Volumes == 1) != few || q.Took.P50 <= 0 || q.Took.Max < q.Took.P99 {
			t.Errorf("question: %+v", q)
		}
	}
}
