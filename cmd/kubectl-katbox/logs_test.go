package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/podend"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// printed is a line of a runtime, so many seconds after noon.
func printed(second int, tag, text string) string {
	return time.Date(2025, 11, 30, 12, 0, second, 5, time.UTC).Format(time.RFC3339Nano) + " stdout " + tag + " " + text + "\n"
}

// trained is a cluster with the logs of two pods of a Job: one with a container, and a later one with a sidecar, restarts and
// rotated files. Of the pod of another Job it is known how it ended.
func trained(t *testing.T) *clustertest.Cluster {
	t.Helper()
	c := clustertest.New(t)
	n := c.Node("n1")
	logs := func(d *volume.Description) {
		d.Record.Pod, d.Record.VolumeName = volume.PodUID("uid-"+d.Record.PodName), volume.LogsName
	}
	data := func(d *volume.Description) { d.Record.Pod = volume.PodUID("uid-" + d.Record.PodName) }
	put := func(dir, path, text string) { write(t, filepath.Join(dir, path), text) }
	_, dir := n.Put(10, "ci", "train", "train-b", logs)
	put(dir, "main/0.log", printed(1, "F", "alone"))
	_, files := n.Put(11, "ci", "train", "train-b", data)
	put(files, "out.txt", "files of b\n")
	_, dir = n.Put(5, "ci", "train", "train-a", logs)
	put(dir, "main/0.log", printed(0, "F", "first run"))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, printed(10, "F", "one"), printed(12, "F", "two"))
	must(t, z.Close())
	put(dir, "main/1.log.20261130-120015.gz", packed.String())
	put(dir, "main/1.log.20261130-120025", printed(20, "P", "thr")+printed(20, "F", "ee"))
	put(dir, "main/1.log", printed(30, "F", "four")+printed(31, "F", "\x1b[31mfive")+"no line of a runtime\n"+printed(32, "F", "six"))
	put(dir, "sidecar/0.log", printed(11, "F", "beside")+printed(40, "F", "beside the end"))
	put(dir, "missing.json", `{"files":[{"container":"main","file":"1.log.20261130-120005.gz","bytes":2048,"why":"limit"}]}`+"\n")
	_, files = n.Put(6, "ci", "train", "train-a", data)
	put(files, "out.txt", "files of a\n")
	n.Put(20, "ci", "quiet", "quiet-a")
	_, dir = n.Put(2, "ci", "told", "told-a", logs, func(d *volume.Description) { d.Record.Outcome = volume.Failed })
	write(t, filepath.Join(dir, "main/0.log"), printed(1, "F", "the \x1b]0;title\alast word"))
	at := time.Date(2025, 11, 30, 12, 0, 0, 0, time.UTC)
	write(t, filepath.Join(dir, "pod.json"), string(podend.Pod{Phase: "Failed", Reason: "Evicted", Message: "disk\x1b[2J",
		Disruption: &podend.Disruption{Reason: "TerminationByKubelet"}, Containers: []podend.Container{
			{Name: "prepare", Kind: podend.Init, State: podend.State{State: podend.Terminated, ExitCode: new(int32(0)), Reason: "Completed"}},
			{Name: "main", Image: "busybox:1.37", Limits: map[string]string{"memory": "64Mi", "cpu": "1"}, Restarts: 2,
				State: podend.State{State: podend.Terminated, ExitCode: new(int32(137)), Reason: "OOMKilled", Message: "one\ntwo\n",
					Started: at, Finished: at.Add(time.Minute)},
				Last: &podend.State{State: podend.Terminated, ExitCode: new(int32(1)), Reason: "Error"}}}}.Encode()))
	return c
}

func TestLogs(t *testing.T) {
	c := trained(t)
	eve := as(t, c, "eve")
	const whole = "one\ntwo\nthree\nfour\n\x1b[31mfive\nsix\n"
	for args, want := range map[string]string{
		"train-b":                                    "alone\n",
		"pod/train-b -c main":                        "alone\n",
		"train-b --prefix":                           "[pod/train-b/main] alone\n",
		"train-b --timestamps":                       "2025-11-30T12:00:01.000000005Z alone\n",
		"train-b --prefix --timestamps":              "[pod/train-b/main] 2025-11-30T12:00:01.000000005Z alone\n",
		"job/train -c main":                          whole,
		"train-a -c main --previous":                 "first run\n",
		"train-a -c sidecar":                         "beside\nbeside the end\n",
		"train-a -c main --tail 2":                   "six\n", // the kubelet counts a line that no runtime writes, too
		"train-a -c main --tail 1":                   "six\n",
		"train-a -c main --tail 4":                   "four\n\x1b[31mfive\nsix\n",
		"train-a -c main --tail 5":                   "ee\nfour\n\x1b[31mfive\nsix\n",
		"train-a -c main --tail 7":                   "two\nthree\nfour\n\x1b[31mfive\nsix\n",
		"train-a -c main --tail 700":                 whole,
		"train-a -c main --tail 0":                   "",
		"train-a -c main --since 1ns":                "",
		"train-a -c main --since 900000h":            whole,
		"train-a --all-containers":                   "one\nbeside\ntwo\nthree\nfour\n\x1b[31mfive\nsix\nbeside the end\n",
		"train-a --all-containers --tail 1":          "six\nbeside the end\n",
		"train-a --all-containers --prefix --tail 1": "[pod/train-a/main] six\n[pod/train-a/sidecar] beside the end\n",
	} {
		code, stdout, stderr := eve.run(append([]string{"logs"}, strings.Fields(args)...)...)
		if code != 0 || stdout != want {
			t.Errorf("%s: code %d, %q, want %q; %s", args, code, stdout, want, stderr)
		}
	}
	_, _, stderr := eve.run("logs", "job/train", "-c", "main")
	for _, part := range []string{"Found 2 pods, using pod/train-a", `of container "main" the beginning is missing, 2.0 KiB`,
		"1 lines that a container runtime"} {
		if !strings.Contains(stderr, part) {
			t.Errorf("the notes are %q, want %q", stderr, part)
		}
	}
	eve.wantFailure(verbs.CodeUsage, []string{"several containers", "main, sidecar"}, "logs", "train-a")
	eve.wantFailure(verbs.CodeUsage, []string{"do not go together"}, "logs", "train-a", "-c", "main", "--all-containers")
	eve.wantFailure(verbs.CodeUsage, []string{"whole volumes are meant"}, "logs", "train-a:main/0.log")
	eve.wantFailure(1, []string{"before its last restart"}, "logs", "train-b", "--previous")
	eve.wantFailure(1, []string{`no log of a container "other"`}, "logs", "train-b", "-c", "other")
	eve.wantFailure(verbs.CodeNoVolume, []string{"no logs of pod/quiet-a are kept", "kubectl logs"}, "logs", "quiet-a")
	as(t, c, "vic").wantFailure(1, []string{"not read their files"}, "logs", "train-b")
}

// TestLogsOfTheDefaultContainer: of several it is that which the pod names, as for kubectl logs.
func TestLogsOfTheDefaultContainer(t *testing.T) {
	c := clustertest.New(t)
	n, eve := c.Node("n1"), as(t, c, "eve")
	for i, usual := range []string{"main", "init"} {
		_, dir := n.Put(1+i, "ci", "steps", "step-"+usual, func(d *volume.Description) { d.Record.VolumeName = volume.LogsName })
		write(t, filepath.Join(dir, "wait/0.log"), printed(1, "F", "beside"))
		write(t, filepath.Join(dir, "main/0.log"), printed(2, "F", "the step"))
		write(t, filepath.Join(dir, "pod.json"), string(podend.Pod{Default: usual, Containers: []podend.Container{
			{Name: "init", Kind: podend.Init}, {Name: "wait"}, {Name: "main"}}}.Encode()))
	}
	eve.wantOutput("the step\n", "logs", "step-main")
	eve.wantOutput("beside\n", "logs", "step-main", "-c", "wait")
	eve.wantOutput("beside\nthe step\n", "logs", "step-main", "--all-containers")
	// Of what it names nothing is kept.
	eve.wantFailure(verbs.CodeUsage, []string{"several containers", "main, wait"}, "logs", "step-init")
}

// TestLogsByVolume: the name of any volume of a pod means its logs.
func TestLogsByVolume(t *testing.T) {
	c := trained(t)
	eve := as(t, c, "eve")
	for _, number := range []int{10, 11} {
		eve.wantOutput("alone\n", "logs", clustertest.Name("train-b", "n1", number))
	}
}

// TestLogsAreNotMeant: a verb for files takes the volume with files, though that with the logs is newer.
func TestLogsAreNotMeant(t *testing.T) {
	c := trained(t)
	eve := as(t, c, "eve")
	eve.wantOutput("files of b\n", "cat", "train-b:out.txt")
	eve.wantOutput("files of a\n", "cat", "job/train:out.txt", "--last")
	eve.wantOutput(printed(1, "F", "alone"), "cat", "train-b:main/0.log", "--volume", volume.LogsName)
	// Where only logs are left, they are meant: of one pod.
	n := c.Node("n2")
	for i, pod := range []string{"left-a", "left-b"} {
		_, dir := n.Put(30+i, "ci", "left", pod, func(d *volume.Description) { d.Record.VolumeName = volume.LogsName })
		write(t, filepath.Join(dir, "main/0.log"), "of "+pod+"\n")
	}
	eve.wantOutput("of left-b\n", "cat", "left-b:main/0.log")
	eve.wantOutput("of left-a\n", "cat", "job/left:main/0.log", "--last")
	eve.wantFailure(verbs.CodeFailed, []string{"2 retained volumes match job/left", "--last"}, "cat", "job/left:main/0.log")
}

// TestDescribe says how a pod ended, what is kept of it, and what it printed last; what is not known it says so.
func TestDescribe(t *testing.T) {
	c := trained(t)
	eve := as(t, c, "eve")
	code, stdout, stderr := eve.run("describe", "job/told")
	if code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	for _, part := range []string{"Pod:       told-a\n", "Outcome:   Failed\n", "Status:    Failed, Evicted, disk\ufffd[2J\n",
		"Disrupted: TerminationByKubelet\n", "  prepare (init container): exit code 0, Completed\n",
		"  main: exit code 137 (SIGKILL)", ", after 1m0s, OOMKilled\n      one\n      two\n",
		"restarted 2 times, the time before: exit code 1, Error\n", "    limits cpu=1, memory=64Mi\n", "  katbox.logs",
		"Last lines of \"main\":\n",
		"last word\n", "\nMore:\n", " logs -n ci " + clustertest.Name("told-a", "n1", 2) + " --all-containers\n"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("it has no %q:\n%s", part, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Errorf("it drives a terminal: %q", stdout)
	}
	_, stdout, stderr = eve.run("describe", "job/train")
	if !strings.Contains(stderr, "Found 2 pods, using pod/train-a") || !strings.Contains(stdout, "Status:    not known") ||
		!strings.Contains(stdout, "six\n") || !strings.Contains(stdout, " ls -n ci ") {
		t.Errorf("%s\n%s", stderr, stdout)
	}
	if _, stdout, _ = eve.run("describe", "quiet-a"); !strings.Contains(stdout, "not known") || strings.Contains(stdout, "Last lines") {
		t.Errorf("of a pod without logs: %s", stdout)
	}
	eve.wantFailure(verbs.CodeNoVolume, []string{"nothing of pod/other is kept"}, "describe", "other")
	eve.wantFailure(verbs.CodeUsage, []string{"is a path"}, "describe", "train-a:main")
	as(t, c, "vic").wantFailure(1, []string{"not read their files"}, "describe", "told-a")
}
