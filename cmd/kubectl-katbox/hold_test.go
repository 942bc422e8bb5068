package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// TestPin: who may patch pins, and lists say so to all.
func TestPin(t *testing.T) {
	c, names := nightly(t)
	kim, vic := as(t, c, "kim"), as(t, c, "vic")
	code, stdout, stderr := kim.run("pin", "--last", "job/nightly", "--for", "60h", "--reason", "post-mortem")
	if code != 0 || stdout != "" || !strings.HasPrefix(stderr, "pinned volume scratch of pod ci/nightly-x7k2p; it expires in 2d1") {
		t.Errorf("pin: code %d, %q, %q", code, stdout, stderr)
	}
	if _, stdout, _ := vic.run("list", "job/nightly"); strings.Count(stdout, "h (pinned)\n") != 1 {
		t.Errorf("list:\n%s", stdout)
	}
	// Its lifespan of 50 hours is longer.
	if code, _, stderr := kim.run("pin", names[1], "--for", "2h", "--reason", "x"); code != 0 ||
		!strings.HasPrefix(stderr, "pinned volume cache of pod ci/nightly-a2b3c: until 20") ||
		!strings.Contains(stderr, " a disk that fills up does not make it go earlier. "+
			"Its lifespan is longer than the pin: it expires in 2d2h (") {
		t.Errorf("pin: code %d, %q", code, stderr)
	}
	if _, stdout, _ := vic.run("stat", names[0]); !strings.Contains(stdout, "pinned until ") ||
		!strings.Contains(stdout, " by kim: post-mortem\n") {
		t.Errorf("stat:\n%s", stdout)
	}
	if code, _, stderr := kim.run("unpin", names[0]); code != 0 ||
		!strings.HasPrefix(stderr, "unpinned volume scratch of pod ci/nightly-x7k2p") {
		t.Errorf("unpin: code %d, %q", code, stderr)
	}
	if code, _, stderr := kim.run("unpin", names[1]); code != 0 {
		t.Errorf("unpin: code %d, %q", code, stderr)
	}
	if _, stdout, _ := vic.run("list", "job/nightly"); strings.Contains(stdout, "pinned") {
		t.Errorf("list after unpin:\n%s", stdout)
	}
}

// TestRelease: the volume is still there, and a person can take it back.
func TestRelease(t *testing.T) {
	c, names := nightly(t)
	eve, kim := as(t, c, "eve"), as(t, c, "kim")
	if code, _, stderr := eve.run("release", names[0], "--reason", "all is clear"); code != 0 ||
		!strings.HasPrefix(stderr, "released volume scratch") {
		t.Errorf("release: code %d, %q", code, stderr)
	}
	if _, stdout, _ := eve.run("list", names[0]); !strings.Contains(stdout, "(released)") {
		t.Errorf("list:\n%s", stdout)
	}
	if code, _, stderr := kim.run("unpin", names[0]); code != 0 {
		t.Errorf("unpin: code %d, %q", code, stderr)
	}
	if _, stdout, _ := eve.run("list", names[0]); strings.Contains(stdout, "(released)") {
		t.Errorf("list after unpin:\n%s", stdout)
	}
}

// TestReleaseByAnOlderGateway: such a one takes no notice of the grace, and would delete the volume.
func TestReleaseByAnOlderGateway(t *testing.T) {
	c, names := nightly(t)
	c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete {
			return false
		}
		if !r.URL.Query().Has("dryRun") {
			t.Errorf("the gateway is asked to delete: %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`))
		return true
	})
	as(t, c, "eve").wantFailure(verbs.CodeFailed, []string{"older version, which would delete the volume"}, "release", names[0])
}

// TestWrongHolds: what is wrong is said, with the role that is missing.
func TestWrongHolds(t *testing.T) {
	c, names := nightly(t)
	eve := as(t, c, "eve")
	for _, row := range []struct {
		code int
		part string
		args []string
	}{
		{verbs.CodeUsage, "--for is missing", []string{"pin", names[0]}},
		{verbs.CodeUsage, "--reason is missing", []string{"pin", names[0], "--for", "1h"}},
		{verbs.CodeUsage, "cannot be shown", []string{"pin", names[0], "--for", "1h", "--reason", "a\nb"}},
		{verbs.CodeUsage, "whole volumes are pinned", []string{"pin", names[0] + ":x", "--for", "1h", "--reason", "x"}},
		{verbs.CodeUsage, "whole volumes are deleted", []string{"rm", "--yes", names[0] + ":x"}},
		{verbs.CodeUsage, "cannot be shown", []string{"release", names[0], "--reason", "\x1b"}},
		{verbs.CodeFailed, "which the role katbox-keep includes", []string{"pin", names[0], "--for", "1h", "--reason", "x"}},
		{verbs.CodeFailed, "which the role katbox-keep includes", []string{"unpin", names[0]}},
		{verbs.CodeNoVolume, "no retained volume", []string{"unpin", "pod/nobody"}},
		{verbs.CodeUsage, "--watch shows what is there", []string{"list", "--gone", "--watch"}},
		{verbs.CodeUsage, "no target of a verb", []string{"list", "--gone", "-o", "name"}},
	} {
		eve.wantFailure(row.code, []string{row.part}, row.args...)
	}
	as(t, c, "vic").wantFailure(verbs.CodeFailed, []string{"which the role edit includes"}, "release", names[0])
}

// TestListGone: what is gone of the namespace, with who wanted that.
func TestListGone(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	eve, bob := as(t, c, "eve"), as(t, c, "bob")
	if code, stdout, stderr := eve.run("list", "--gone"); code != 0 || stdout != "" ||
		stderr != "no volume is gone that the nodes remember in namespace ci\n" {
		t.Errorf("nothing: code %d, %q, %q", code, stdout, stderr)
	}
	purged, _ := n.Put(1, "ci", "nightly", "nightly-x7k2p", func(d *volume.Description) {
		d.Record.Outcome, d.Record.Lifespan = volume.Failed, 12*time.Hour
	})
	n.Put(2, "ci", "nightly", "nightly-9fz1c", func(d *volume.Description) { d.Record.Lifespan = 12 * time.Hour })
	n.Put(3, "etl", "load", "load-q1w2e")
	if code, _, stderr := eve.run("rm", purged, "--yes", "--reason", "a secret"); code != 0 {
		t.Fatalf("rm: %q", stderr)
	}
	n.Evict(2)
	n.Evict(3)
	const none, hint = "no retained volumes", "; some went early in the last 24 hours, to make room: --gone lists them"
	for args, want := range map[string]string{
		"":                         none + " in namespace ci" + hint,
		"pod/nightly-9fz1c":        none + " of pod/nightly-9fz1c in namespace ci" + hint,
		"pod/nightly-x7k2p":        none + " of pod/nightly-x7k2p in namespace ci", // a person wanted that
		"--volume other --limit 1": none + " named other in namespace ci",
		"job/nightly --since 1h":   none + " of job/nightly of the last 1h in namespace ci" + hint,
	} {
		if code, _, stderr := eve.run(append([]string{"list"}, strings.Fields(args)...)...); code != 0 || stderr != want+"\n" {
			t.Errorf("list %s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
	const early = " any more: the last one went "
	const kept = "s ago, and was kept for "
	const see = "(bytes: the disk ran short of space); see kubectl katbox list --gone "
	for args, parts := range map[string][]string{
		"ls pod/nightly-9fz1c": {
			"no retained volume in namespace ci matches pod/nightly-9fz1c" + early, kept, " of 12h " + see + "pod/nightly-9fz1c",
		},
		"stat job/nightly":               {"no retained volume in namespace ci matches job/nightly" + early, kept, see},
		"cp pod/nightly-x7k2p -":         {" of 12h (purged by eve: a secret)"},
		"describe nightly-9fz1c":         {"nothing of pod/nightly-9fz1c is kept" + early, kept, see},
		"logs job/nightly":               {"its node keeps none"}, // what went had no logs
		"ls nightly-9fz1c --volume none": {"it expired, there was none"},
	} {
		eve.wantFailure(verbs.CodeNoVolume, parts, strings.Fields(args)...)
	}
	// A search of what is not there says the same as the list, and why it is gone.
	for args, parts := range map[string][]string{
		"grep x nightly-9fz1c": {"nothing was found: no retained volumes of pod/nightly-9fz1c in namespace ci; the last one went",
			"was kept for 2m of 12h (bytes: the disk ran short of space); see kubectl katbox list --gone pod/nightly-9fz1c"},
		"grep x pod/nobody --since 2h": {"nothing was found: no retained volumes of pod/nobody of the last 2h in namespace ci\n"},
	} {
		eve.wantFailure(1, parts, strings.Fields(args)...)
	}
	_, stdout, _ := eve.run("list", "--gone")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) != 3 || strings.Join(strings.Fields(lines[0]), " ") != "NAME VOLUME OWNER OUTCOME SIZE GONE KEPT WHY" ||
		!strings.Contains(lines[1]+lines[2], " of 12h  bytes: the disk ran short of space") ||
		!strings.Contains(lines[1]+lines[2], " of 12h  purged by eve: a secret") {
		t.Errorf("table:\n%s", stdout)
	}
	for args, want := range map[string]int{
		"pod/nightly-x7k2p": 1, "job/nightly": 2, "--since 2h": 2, "--limit 1": 1, purged: 1, "pod/nobody": 0,
	} {
		_, stdout, _ := eve.run(append([]string{"list", "--gone", "-o", "json"}, strings.Fields(args)...)...)
		var list resource.RetainedVolumeList
		if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list.Items) != want {
			t.Errorf("%s: %v, want %d\n%s", args, err, want, stdout)
		}
	}
	if _, stdout, _ := bob.run("list", "--gone", "-n", "etl", "-o", "wide"); !strings.Contains(stdout, "load-q1w2e") ||
		strings.Contains(stdout, "nightly") {
		t.Errorf("the other namespace:\n%s", stdout)
	}
	bob.wantFailure(verbs.CodeFailed, []string{"may not list"}, "list", "--gone")
}

// TestHostileHolds: reasons that want to harm who looks at them are shown as text of one line.
func TestHostileHolds(t *testing.T) {
	c := clustertest.New(t)
	evil := "\x1b]0;owned\x07\nline\u202e" + strings.Repeat("x", 1100)
	list := resource.RetainedVolumeList{Items: []resource.RetainedVolume{{
		Spec:   resource.Spec{PodName: strings.Repeat("p", 253), VolumeName: "v", NodeName: "n1"},
		Status: resource.Status{Phase: "Retained", Outcome: evil[:20], Hold: &resource.Hold{Kind: evil[:20], By: evil, Why: evil}},
	}}}
	list.Items[0].Name, list.Items[0].Namespace = "a.0000abcdefgh", "ci"
	c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("fieldSelector") == "status.phase=Gone" {
			list.Items[0].Status.Gone = &resource.Gone{Reason: evil[:20], Kept: evil[:20], Promised: evil[:20], By: evil, Why: evil}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
		return true
	})
	for _, args := range [][]string{{"list"}, {"list", "--gone"}, {"stat", "a.0000abcdefgh"}} {
		code, stdout, stderr := as(t, c, "eve").run(args...)
		if code != 0 {
			t.Errorf("%q: code %d, %q", args, code, stderr)
		}
		for line := range strings.Lines(stdout) {
			if line = strings.TrimSuffix(line, "\n"); !terminal.IsPlain(line) || strings.HasPrefix(line, "line") ||
				args[0] == "list" && len(line) > 800 {
				t.Errorf("%q: %d bytes: %q", args, len(line), line)
			}
		}
	}
}
