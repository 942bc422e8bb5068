package verbs

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

func TestStat(t *testing.T) {
	n := newNode(t)
	someFiles(t, n.add(1, "etl/nightly/scratch", 3*time.Hour))
	n.change(1, func(d *volume.Description) { d.Size, d.Early = volume.Size{Bytes: 1288490189, Inodes: 17}, true })
	r := n.volumes[0].Record
	mustPrint(t, fmt.Sprintf(`Volume:           scratch
Namespace:        etl
Pod:              nightly
Pod UID:          pod-1
Service account:  -
Node:             n17
ID:               %s
Phase:            Retained
Published:        %s (4h ago)
Retained:         %s (3h ago)
Expires:          %s (in 9h), earlier than its lifespan: the disk fills up
Size:             1.2 GiB (1288490189 bytes)
Inodes:           17
`, id(1), verbs.Moment(r.Published), verbs.Moment(r.Unpublished), verbs.Moment(n.volumes[0].Deadline)), "stat", "etl/nightly")
	var v api.Volume
	if err := json.Unmarshal([]byte(katbox(t, "stat", "-o", "json", id(1)).stdout), &v); err != nil || v.ID != id(1) {
		t.Errorf("%v, %+v", err, v)
	}
	got := katbox(t, "stat", "etl/nightly:out/deep/er/data")
	for _, want := range []string{
		"Path:         /out/deep/er/data\n", "Target:       " + id(1) + ":out/deep/er/data\n", "Type:         file\n",
		"Size:         2.0 KiB (2048 bytes)\n",
		"Mode:         0644 (-rw-r--r--)\n", "Modified:     2026-03-04T05:06:07Z (",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s%s", want, got.stdout, got.stderr)
		}
	}
	if got := katbox(t, "stat", "etl/nightly:link"); !strings.Contains(got.stdout, "Points to:    /etc/shadow\n") {
		t.Errorf("got\n%s%s", got.stdout, got.stderr)
	}
	if got := katbox(t, "stat", "etl/nightly:"); !strings.Contains(got.stdout, "Path:         /\n") {
		t.Errorf("got\n%s%s", got.stdout, got.stderr)
	}
}

func TestCatWritesTheBytes(t *testing.T) {
	n := newNode(t)
	content := "bytes \x1b[2J\xff\x00\r\n"
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/a:b", content)
	mustPrint(t, content, "cat", "etl/nightly:a:b")
	mustPrint(t, content+content, "cat", "etl/nightly:a:b", id(1)+"::a%3Ab")
}

func TestTail(t *testing.T) {
	n := newNode(t)
	var content strings.Builder
	for i := range 100 {
		fmt.Fprintf(&content, "line %d\n", i)
	}
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", content.String())
	mustPrint(t, "line 97\nline 98\nline 99\n", "tail", "-n", "3", "etl/nightly:log")
	mustPrint(t, "e 99\n", "tail", "-c", "5", "etl/nightly:log")
	mustPrint(t, content.String(), "tail", "-c", "64Ki", "etl/nightly:log")
	mustPrint(t, "", "tail", "-n", "0", "etl/nightly:log")
	mustPrint(t, "", "tail", "-c", "0", "etl/nightly:log")
	if got := katbox(t, "tail", "etl/nightly:log").stdout; strings.Count(got, "\n") != 10 {
		t.Errorf("without flags: %q", got)
	}
}

// TestATerminalShowsControlCharacters: cat, tail and report write them as they are only elsewhere,
// or where the user asks for it. Colors are no danger.
func TestATerminalShowsControlCharacters(t *testing.T) {
	n := newNode(t)
	dir := n.add(1, "etl/nightly/scratch", time.Hour)
	write(t, dir+"/log", "red \x1b[2J\x1b[31m\tü\n")
	write(t, dir+"/bar", "begin\n10 %\r20 %\r30 %\n")
	const note = "lines that were overwritten, as of a progress bar, are not shown (2); --raw writes them\r\n"
	for _, test := range []struct {
		want string
		args []string
	}{
		{`red \x1b[2J` + "\x1b[31m\tü\r\n\x1b[0m", []string{"cat", "etl/nightly:log"}},
		{`red \x1b[2J` + "\x1b[31m\tü\r\n\x1b[0m", []string{"tail", "-n", "1", "etl/nightly:log"}},
		{"red \x1b[2J\x1b[31m\tü\r\n", []string{"cat", "--raw", "etl/nightly:log"}},
		{"begin\r\n30 %\r\n" + note, []string{"cat", "etl/nightly:bar"}},
		{"30 %\r\n" + note, []string{"tail", "-n", "1", "etl/nightly:bar"}},
		{"10 %\r20 %\r30 %\r\n", []string{"tail", "-n", "1", "--raw", "etl/nightly:bar"}},
		{"version test\r\nodd \\x1b name\r\n", []string{"report"}},
	} {
		out, code := onTerminal(t, "", test.args...)
		if out != test.want || code != 0 {
			t.Errorf("katbox %q: exit code %d, terminal shows %q, want %q", test.args, code, out, test.want)
		}
	}
	mustPrint(t, "10 %\r20 %\r30 %\n", "tail", "-n", "1", "etl/nightly:bar")
	mustPrint(t, "red \x1b[2J\x1b[31m\tü\n", "cat", "etl/nightly:log")
	out, code := onTerminal(t, "", "cp", "etl/nightly", "-")
	if code != verbs.CodeUsage || !strings.Contains(out, "not for a terminal") {
		t.Errorf("a tar to a terminal: exit code %d, %q", code, out)
	}
}

func TestRemove(t *testing.T) {
	n := newNode(t)
	threeJobs(n)
	mustFail(t, verbs.CodeUsage, []string{"rm", "etl/nightly-x7k2p"}, "give --yes")
	mustFail(t, verbs.CodeUsage, []string{"rm", "--yes", "etl/nightly-x7k2p:out"}, "whole volumes are deleted")
	if out, code := onTerminal(t, "n\n", "rm", "etl/nightly-x7k2p"); code != verbs.CodeFailed || len(n.volumes) != 3 ||
		!strings.Contains(out, "Delete volume scratch of pod etl/nightly-x7k2p (1.2 GiB, retained 3h ago)? [y/N] ") ||
		!strings.Contains(out, "nothing was deleted") {
		t.Errorf("exit code %d, %q", code, out)
	}
	if out, code := onTerminal(t, "\x04", "rm", "etl/nightly-x7k2p"); code != verbs.CodeFailed || len(n.volumes) != 3 {
		t.Errorf("without an answer: exit code %d, %q", code, out)
	}
	if out, code := onTerminal(t, "y\n", "rm", "etl/nightly-x7k2p"); code != 0 || len(n.volumes) != 2 {
		t.Errorf("exit code %d, %q", code, out)
	}
	r := katbox(t, "rm", "--yes", id(2))
	if r != (result{"", "deleted volume scratch of pod etl/nightly-9fz1c (of unknown size, retained 4h ago)\n", 0}) {
		t.Errorf("%+v", r)
	}
	mustFail(t, verbs.CodeNoVolume, []string{"rm", "--yes", id(2)}, "there is no volume with the ID")
}

func TestTop(t *testing.T) {
	n := newNode(t)
	threeJobs(n)
	n.add(4, "etl/running/scratch", 0)
	n.change(4, func(d *volume.Description) { d.Record.Phase = volume.Published })
	n.usage = volume.Size{Bytes: 5 << 20, Inodes: 3}
	mustPrint(t, `NAMESPACE  LIVE  SIZE     RETAINED  SIZE     INODES
etl        1     5.0 MiB  2         1.2 GiB  20
ci         0     0 B      1         0 B      0

12 GiB of 100 GiB are free (12 %), and 900 of 1000 inodes
2 volumes are not measured yet: their sizes are missing above
`, "top")
	mustPrint(t, `NAMESPACE  POD            LIVE  SIZE     RETAINED  SIZE     INODES
etl        nightly-x7k2p  0     0 B      1         1.2 GiB  17
etl        running        1     5.0 MiB  0         0 B      3
etl        nightly-9fz1c  0     0 B      1         0 B      0

12 GiB of 100 GiB are free (12 %), and 900 of 1000 inodes
1 volumes are not measured yet: their sizes are missing above
`, "top", "--pods", "-n", "etl")
	var usage api.Usage
	if err := json.Unmarshal([]byte(katbox(t, "top", "-o", "json").stdout), &usage); err != nil ||
		len(usage.Namespaces) != 2 || len(usage.Pods) != 4 || usage.Node != "n17" {
		t.Errorf("%v, %+v", err, usage)
	}
}

// TestTopWithManyPods: the sums of the namespaces are complete.
func TestTopWithManyPods(t *testing.T) {
	n := newNode(t)
	n.pages = 500
	for i := range 1010 {
		n.add(i, fmt.Sprintf("etl/job-%d/scratch", i), time.Hour)
		n.change(i, func(d *volume.Description) {
			d.Record.Pod, d.Size = volume.PodUID(fmt.Sprint(i)), volume.Size{Bytes: 1 << 20, Inodes: 1}
		})
	}
	mustPrint(t, `NAMESPACE  LIVE  SIZE  RETAINED  SIZE      INODES
etl        0     0 B   1010      1010 MiB  1010

12 GiB of 100 GiB are free (12 %), and 900 of 1000 inodes
`, "top")
	const rest = "\n10 smaller pods are missing above, which take 10 MiB together\n"
	if r := katbox(t, "top", "--pods"); r.code != 0 || !strings.Contains(r.stdout, rest) {
		t.Errorf("exit code %d, stderr %q, stdout of %d bytes ends with %q",
			r.code, r.stderr, len(r.stdout), r.stdout[max(len(r.stdout)-200, 0):])
	}
}

func TestReport(t *testing.T) {
	newNode(t)
	mustPrint(t, "version test\nodd \x1b name\n", "report")
	mustPrint(t, "version test\nodd \x1b name\n", "report", "-")
	name := t.TempDir() + "/report"
	if r := katbox(t, "report", name); r.code != 0 || r.stdout != "" || !strings.Contains(r.stderr, name) {
		t.Errorf("%+v", r)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "version test\nodd \x1b name\n" {
		t.Errorf("%q, %v", got, err)
	}
	mustFail(t, verbs.CodeFailed, []string{"report", name}, "file exists")
}
