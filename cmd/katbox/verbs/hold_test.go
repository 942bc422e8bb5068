package verbs

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestPin: a volume is pinned and unpinned, and lists say so.
func TestPin(t *testing.T) {
	n := newNode(t)
	threeJobs(n)
	r := katbox(t, "pin", "ci/build", "--for", "60h", "--reason", "post-mortem")
	if r.code != 0 || r.stdout != "" || !strings.HasPrefix(r.stderr, "pinned volume cache of pod ci/build; it expires in 2d1") {
		t.Errorf("pin: %+v", r)
	}
	// Its lifespan is longer.
	if r := katbox(t, "pin", "etl/nightly-x7k2p", "--for", "1h", "--reason", "x"); r.code != 0 ||
		!strings.Contains(r.stderr, "Its lifespan is longer than the pin: it expires in ") {
		t.Errorf("pin: %+v", r)
	}
	if r := katbox(t, "ls", "ci"); !strings.Contains(r.stdout, "h (pinned)\n") {
		t.Errorf("ls: %+v", r)
	}
	if r := katbox(t, "stat", "ci/build"); !strings.Contains(r.stdout, "pinned until ") ||
		!strings.Contains(r.stdout, " by root on the node: post-mortem\n") {
		t.Errorf("stat: %+v", r)
	}
	if r := katbox(t, "unpin", "ci/build"); r.code != 0 ||
		!strings.HasPrefix(r.stderr, "unpinned volume cache of pod ci/build; it expires in ") {
		t.Errorf("unpin: %+v", r)
	}
	if r := katbox(t, "ls", "ci"); strings.Contains(r.stdout, "pinned") {
		t.Errorf("ls after it: %+v", r)
	}
	if r := katbox(t, "release", "ci/build", "--reason", "done"); r.code != 0 ||
		!strings.HasPrefix(r.stderr, "released volume cache of pod ci/build; it expires in ") {
		t.Errorf("release: %+v", r)
	}
	if r := katbox(t, "ls", "ci"); !strings.Contains(r.stdout, "(released)\n") {
		t.Errorf("ls of what is released: %+v", r)
	}
}

// TestWrongHolds: what is wrong is said, and nothing changes.
func TestWrongHolds(t *testing.T) {
	n := newNode(t)
	threeJobs(n)
	n.add(4, "etl/running/scratch", 0)
	n.change(4, func(d *volume.Description) { d.Record.Phase = volume.Published })
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"pin", "ci/build"}, verbs.CodeUsage, "--for is missing"},
		{[]string{"pin", "ci/build", "--for", "2h"}, verbs.CodeUsage, "--reason is missing"},
		{[]string{"pin", "ci/build", "--for", "2h", "--reason", "  "}, verbs.CodeUsage, "--reason is missing"},
		{[]string{"pin", "ci/build", "--for", "soon", "--reason", "x"}, verbs.CodeUsage, "not a duration"},
		{[]string{"pin", "ci/build", "--for", "-2h", "--reason", "x"}, verbs.CodeUsage, "not a duration"},
		{[]string{"pin", "ci/build", "--for", "2h", "--reason", "a\nb"}, verbs.CodeUsage, "cannot be shown"},
		{[]string{"pin", "ci/build", "--for", "2h", "--reason", strings.Repeat("x", 1025)}, verbs.CodeUsage, "1025 bytes"},
		{[]string{"release", "ci/build", "--reason", "\x1b[2J"}, verbs.CodeUsage, "cannot be shown"},
		{[]string{"rm", "ci/build", "--yes", "--reason", "\x1b[2J"}, verbs.CodeUsage, "cannot be shown"},
		{[]string{"pin", "ci/build:a", "--for", "2h", "--reason", "x"}, verbs.CodeUsage, "is a path: whole volumes are pinned"},
		{[]string{"unpin", "ci/nobody"}, verbs.CodeNoVolume, "no retained volume"},
		{[]string{"release", id(4)}, verbs.CodeFailed, "only retained volumes are released"},
		{[]string{"ls", "--gone", "-o", "name"}, verbs.CodeUsage, "no target"},
		{[]string{"ls", "--gone", "ci/build:"}, verbs.CodeUsage, "--gone"},
	} {
		if r := katbox(t, tt.args...); r.code != tt.code || !strings.Contains(r.stderr, tt.want) || r.stdout != "" {
			t.Errorf("%.60q: %+v, want code %d and %q", tt.args, r, tt.code, tt.want)
		}
	}
	for _, d := range n.volumes {
		if d.Record.Hold != (volume.Hold{}) {
			t.Errorf("%+v", d.Record)
		}
	}
}

// TestLsGone: what is gone is listed, with who wanted that.
func TestLsGone(t *testing.T) {
	n := newNode(t)
	threeJobs(n)
	if r := katbox(t, "ls", "--gone"); r != (result{"", "no volume is gone that this node remembers\n", 0}) {
		t.Errorf("nothing: %+v", r)
	}
	n.change(1, func(d *volume.Description) { d.Record.Outcome, d.Record.Lifespan = volume.Failed, 12*time.Hour })
	for _, target := range []string{"ci/build", "etl/nightly-9fz1c", "etl/nightly-x7k2p"} {
		if r := katbox(t, "rm", target, "--yes", "--reason", "a secret"); r.code != 0 {
			t.Fatalf("rm %s: %+v", target, r)
		}
	}
	want := "NAMESPACE POD VOLUME SIZE OUTCOME GONE KEPT WHY etl nightly-x7k2p scratch 1.2 GiB Failed TIME ago " +
		"3h of 12h purged by root on the node: a secret"
	r := katbox(t, "ls", "--gone", "--limit", "1")
	got := strings.Join(strings.Fields(regexp.MustCompile(`\d+s ago`).ReplaceAllString(r.stdout, "TIME ago")), " ")
	if got != want {
		t.Errorf("got\n%swant\n%s", r.stdout, want)
	}
	if r := katbox(t, "ls", "--gone", "-o", "wide", "etl/nightly-x7k2p"); !strings.Contains(r.stdout, id(1)) ||
		strings.Count(r.stdout, "\n") != 2 {
		t.Errorf("wide: %+v", r)
	}
	for args, want := range map[string]int{"etl": 2, "ci/build/cache": 1, "ci/build/other": 0, id(2): 1, "--since 1h": 3, "-n ci": 1} {
		var list api.GoneList
		r := katbox(t, append([]string{"ls", "--gone", "-o", "json"}, strings.Fields(args)...)...)
		if err := json.Unmarshal([]byte(r.stdout), &list); err != nil || len(list.Items) != want {
			t.Errorf("%s: %v, %+v, want %d", args, err, r, want)
		}
	}
}

// TestEmptyListHintsAtWhatWentEarly lately, of what is asked for.
func TestEmptyListHintsAtWhatWentEarly(t *testing.T) {
	n := newNode(t)
	threeJobs(n)
	for i, reason := range []volume.Reason{volume.ForBytes, volume.Expired, volume.ForFloor} {
		stone := volume.Tombstone{Number: uint64(i + 1), Record: n.volumes[i].Record, Gone: time.Now(), Kept: time.Minute, Reason: reason}
		if reason == volume.ForFloor {
			stone.Gone = stone.Gone.Add(-2 * verbs.Lately)
		}
		n.gone = append([]volume.Tombstone{stone}, n.gone...)
	}
	for i := range n.gone { // the last one is gone for the longest time
		n.gone[i].Number = uint64(i + 1)
	}
	n.volumes = nil
	const hint = "no retained volumes; some went early in the last 24 hours, to make room: --gone lists them\n"
	for args, want := range map[string]string{
		"": hint, "etl": hint, "etl/nightly-x7k2p --since 1h": hint, "--limit 1": hint,
		"etl/nightly-9fz1c":       "no retained volumes\n", // it expired
		"ci":                      "no retained volumes\n", // it is long ago
		"etl/nightly-x7k2p/other": "no retained volumes\n",
	} {
		if r := katbox(t, append([]string{"ls"}, strings.Fields(args)...)...); r != (result{"", want, 0}) {
			t.Errorf("ls %s: %+v, want %q", args, r, want)
		}
	}
}

// TestHostileHolds: names and reasons that want to harm who looks at them are shown as text of one line.
func TestHostileHolds(t *testing.T) {
	n := newNode(t)
	n.add(1, "etl/"+strings.Repeat("p", 253)+"/scratch", time.Hour)
	evil := "\x1b]0;owned\x07\nline\u202e" + strings.Repeat("x", 1000)
	n.change(1, func(d *volume.Description) {
		d.Record.Hold = volume.Hold{Kind: volume.Pinned, For: 2 * time.Hour, By: evil, Why: evil}
	})
	n.gone = append(n.gone, volume.Tombstone{
		Number: 1, Record: n.volumes[0].Record, Gone: time.Now(), Reason: volume.Purged, By: evil, Why: evil,
	})
	for _, args := range [][]string{{"ls"}, {"ls", "--gone"}, {"stat", id(1)}} {
		r := katbox(t, args...)
		if r.code != 0 {
			t.Errorf("%q: %+v", args, r)
		}
		for line := range strings.Lines(r.stdout) {
			if line = strings.TrimSuffix(line, "\n"); !terminal.IsPlain(line) || strings.HasPrefix(line, "line") ||
				args[0] == "ls" && len(line) > 600 {
				t.Errorf("%q: %d bytes: %q", args, len(line), line)
			}
		}
	}
}
