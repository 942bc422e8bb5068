package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/podend"
	"github.com/katbox/katbox/internal/model/volume"
)

// ended is a cluster with pods that have ended: their files and their logs are kept.
type ended struct {
	*site
	*plugin
	v *visitor
	b *beacon
	// files and logs are the names of the volumes of the pod that failed, done is the logs of one that succeeded, unknown
	// those of a failed one of which it is not known how it ended, and bare the files of one without logs.
	files, logs, done, unknown, bare string
}

// lastWord is the last line of the log of the pod that failed.
const lastWord = "out of memory, giving up"

func openEnded(t testing.TB) *ended {
	t.Helper()
	e := &ended{b: newBeacon(t)}
	hostile := `<img src=x onerror="` + e.b.script("said") + `">`
	put := func(n *node, pod, name string, outcome volume.Outcome, files map[string]string) string {
		volumeName, path := n.put(func(d *volume.Description) {
			d.Record.Pod, d.Record.PodName, d.Record.VolumeName, d.Record.Outcome = volume.PodUID("5f1c-"+pod), pod, name, outcome
			aged(d, 0.7, 12, 1<<20, 31)
		})
		for name, content := range files {
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(path, name)), 0o755), os.WriteFile(filepath.Join(path, name), []byte(content), 0o644))
		}
		return volumeName
	}
	var log strings.Builder
	for line := range strings.Lines(trainLog(900) + hostile + "\n\x1b]0;" + ran + "\a\x1b[31mred\n" + lastWord + "\n") {
		log.WriteString("2026-11-22T02:21:00.000000001Z stderr F " + line)
	}
	began := time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC)
	how := podend.Pod{Phase: "Failed", Reason: "Evicted", Message: hostile, Containers: []podend.Container{
		{Name: "main", Restarts: 2, State: podend.State{State: podend.Terminated, ExitCode: new(int32(137)), Reason: "OOMKilled",
			Message: strings.Repeat(hostile+"\n", 9), Started: began, Finished: began.Add(21 * time.Minute)}},
		{Name: "sidecar", State: podend.State{State: podend.Terminated, ExitCode: new(int32(0)), Reason: hostile}}}}
	for range 30 {
		how.Containers = append(how.Containers, podend.Container{Name: "more", Image: hostile})
	}
	e.site = newSite(t, map[string]func(*node){"n1": func(n *node) {
		logs := map[string]string{
			"main/0.log": "earlier\n", "main/2.log": log.String(), "sidecar/0.log": "beside\n", "pod.json": string(how.Encode()),
		}
		e.files = put(n, "train-7", "scratch", volume.Failed, map[string]string{"result.txt": "of train-7\n"})
		e.logs = put(n, "train-7", volume.LogsName, volume.Failed, logs)
		e.done = put(n, "train-8", volume.LogsName, volume.Succeeded, logs)
		e.unknown = put(n, "train-9", volume.LogsName, volume.Failed, map[string]string{
			"main/0.log": lastWord + "\n", "pod.json": "<script>" + strings.Repeat("x", 1<<20),
		})
		e.bare = put(n, "train-10", "scratch", volume.Failed, map[string]string{"result.txt": "of train-10\n"})
	}})
	e.plugin = startPlugin(t, e.kubeconfig("token-of-alice", ""))
	e.v = newVisitor(t)
	e.enter(e.v)
	return e
}

// TestFailedPodOpensAtItsEnd: the logs of a pod that failed open at the end of the log that says why, below how the pod
// ended, and lead to its files; these lead to the logs. Other volumes open as they did.
func TestFailedPodOpensAtItsEnd(t *testing.T) {
	e := openEnded(t)
	v := e.v
	v.sees("train-7")
	const how = "exit code 137 (SIGKILL), OOMKilled"
	atEnd := func(v *visitor) {
		v.t.Helper()
		v.wait("the last line is in sight", inSight(lastWord))
		v.wait("it is the log of the container that failed", `location.hash.endsWith("/main/2.log")`)
		v.wait("how it ended is in sight", inSight(how))
	}
	v.goTo(place{hash: "#/ci/" + e.logs, shows: "Opened at its end: the pod failed."})
	atEnd(v)
	v.click("scratch")
	v.sees("result.txt")
	v.sees(how)
	v.click("result.txt")
	v.sees("of train-7")
	if ask[bool](v, inSight(how)) {
		t.Error("how the pod ended takes room beside its files")
	}
	ask[bool](v, "(history.back(), true)")
	v.sees(how)
	v.click("katbox.logs")
	atEnd(v)
	// The directories are there, and back leads where one came from.
	v.click("main")
	v.sees("0.log")
	v.click("train-7")
	v.sees("pod.json")
	v.goTo(place{hash: "#/ci", shows: "train-10"})
	v.goTo(place{hash: "#/ci/" + e.logs, shows: how})
	atEnd(v)
	ask[bool](v, "(history.back(), true)")
	v.sees("train-10")

	tab := newTab(v)
	must(t, tab.visit(e.origin+"/#/ci/"+e.logs))
	atEnd(tab)
	must(t, tab.visit(e.origin+"/#/ci/"+e.unknown))
	tab.wait("the last line is in sight", inSight(lastWord))
	tab.sees("It is not known how the containers ended.")
	for _, at := range []place{{hash: e.done, shows: "pod.json"}, {hash: e.bare, shows: "result.txt"}} {
		must(t, tab.visit(e.origin+"/#/ci/"+at.hash))
		tab.sees(at.shows)
		tab.settle()
		if ask[bool](tab, `document.querySelector(".ending").checkVisibility()`) {
			t.Errorf("%s shows how the pod ended", at.hash)
		}
	}
	v.wantQuiet(e.host, e.raw)
	e.b.wantSilence(v, "the logs")
	e.b.wantSilence(tab, "the logs")
}

// TestEndAccessible: whatever containers wrote, axe finds nothing wrong, nothing is wider than the screen, and there is room
// for the log.
func TestEndAccessible(t *testing.T) {
	e := openEnded(t)
	library := axe(t)
	for _, look := range fileLooks {
		e.v.look(look.width, look.scheme)
		e.v.goTo(place{hash: "#/ci", shows: "train-10"})
		e.v.goTo(place{hash: "#/ci/" + e.logs, shows: "Opened at its end"})
		e.v.sees("OOMKilled")
		e.v.settle()
		checkWithAxe(e.v, library)
		if wide := ask[float64](e.v, "document.documentElement.scrollWidth"); wide > float64(look.width) {
			t.Errorf("%s: the page is %v wide", look.name, wide)
		}
		if high := ask[float64](e.v, `document.querySelector(".code").getBoundingClientRect().height`); high < 240 {
			t.Errorf("%s: %v pixels are left for the log", look.name, high)
		}
		if directory := os.Getenv("PAGE_SHOTS"); directory != "" {
			e.v.shoot(filepath.Join(directory, "end-"+look.name+".png"))
		}
	}
	e.b.wantSilence(e.v, "the end")
}
