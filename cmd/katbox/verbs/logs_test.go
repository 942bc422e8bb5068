package verbs

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestLogs: the same verb as that of kubectl katbox, by names and IDs of the node.
func TestLogs(t *testing.T) {
	n := newNode(t)
	write(t, filepath.Join(n.add(1, "etl/nightly/"+volume.LogsName, time.Hour), "main/0.log"), "2025-11-30T12:00:01Z stdout F what it said\n")
	write(t, n.add(2, "etl/nightly/scratch", 2*time.Hour)+"/file", "a file\n")
	n.change(2, func(d *volume.Description) { d.Record.Pod = n.volumes[0].Record.Pod })
	n.add(3, "etl/quiet/scratch", time.Hour)
	for _, target := range []string{"etl/nightly", "etl/nightly/scratch", id(1), id(2)} {
		mustPrint(t, "what it said\n", "logs", target)
	}
	mustPrint(t, "2025-11-30T12:00:01.000000000Z what it said\n", "logs", "--timestamps", "etl/nightly")
	for args, want := range map[string]string{
		"etl/quiet":             "no logs of etl/quiet are kept on this node",
		"etl/nightly:main":      "is a path: a pod is meant",
		"etl/nightly --tail -2": "less than -1",
	} {
		if got := katbox(t, append([]string{"logs"}, strings.Fields(args)...)...); got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: code %d, %q, want %q", args, got.code, got.stderr, want)
		}
	}
}

// TestLogsAreNotMeant: a verb for files means the logs only where nothing else of the target is left, and then of one pod.
func TestLogsAreNotMeant(t *testing.T) {
	n := newNode(t)
	for i, said := range []string{"newest", "older"} {
		write(t, filepath.Join(n.add(1+i, "etl/nightly/"+volume.LogsName, time.Duration(1+i)*time.Hour), "main/0.log"), said+"\n")
	}
	mustPrint(t, "newest\n", "cat", "--last", "etl/nightly:main/0.log")
	got := katbox(t, "cat", "etl/nightly:main/0.log")
	if got.code == 0 || !strings.Contains(got.stderr, "2 retained volumes match etl/nightly") {
		t.Errorf("of two pods: code %d, %q, %q", got.code, got.stdout, got.stderr)
	}
	write(t, filepath.Join(n.add(3, "etl/nightly/scratch", 3*time.Hour), "file"), "a file\n")
	mustPrint(t, "a file\n", "cat", "etl/nightly:file")
}

// TestDescribe: the same verb as that of kubectl katbox. Of two pods with one name it is the one that ended last.
func TestDescribe(t *testing.T) {
	n := newNode(t)
	dir := n.add(1, "etl/nightly/"+volume.LogsName, time.Hour)
	write(t, filepath.Join(dir, "main/0.log"), "2025-11-30T12:00:01Z stdout F the \x1b[2Jlast word\n")
	write(t, filepath.Join(dir, "pod.json"), `{"phase":"Failed","containers":[{"name":"main","exitCode":137,"reason":"OOMKilled"}]}`)
	n.add(2, "etl/nightly/scratch", 2*time.Hour)
	n.change(2, func(d *volume.Description) { d.Record.Pod, d.Record.Outcome = n.volumes[0].Record.Pod, volume.Failed })
	n.add(3, "etl/nightly/scratch", 3*time.Hour)
	for _, target := range []string{"etl/nightly", id(1), id(2)} {
		got := katbox(t, "describe", target)
		for _, part := range []string{"Pod:       nightly\n", "Node:      n17\n", "Outcome:   Failed\n", "Status:    Failed\n",
			"  main: exit code 137 (SIGKILL), OOMKilled\n", "  katbox.logs", id(1), id(2), "Last lines of \"main\":\nthe ", "last word\n",
			"\nMore:\n  katbox logs " + id(1) + " --all-containers\n  katbox ls " + id(2) + ":\n"} {
			if got.code != 0 || !strings.Contains(got.stdout, part) || strings.Contains(got.stdout, "\x1b") || strings.Contains(got.stdout, id(3)) {
				t.Errorf("%s: code %d, %s: no %q, or too much:\n%s", target, got.code, got.stderr, part, got.stdout)
			}
		}
	}
	if got := katbox(t, "describe", id(3)); got.code != 0 || !strings.Contains(got.stdout, "Status:    not known") {
		t.Errorf("without logs: code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	for target, want := range map[string]string{"etl/none": "no retained volume", "etl/nightly:main": "is a path: a pod is meant"} {
		if got := katbox(t, "describe", target); got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: code %d, %q, want %q", target, got.code, got.stderr, want)
		}
	}
}
