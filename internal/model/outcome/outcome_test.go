package outcome

import (
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// at is a time on the clock of the API server or the node, in seconds.
func at(seconds int64) time.Time { return time.Unix(1_800_000_000+seconds, 0) }

// ran is a container that exited with 0.
func ran(from, to int64) Container { return Container{Started: at(from), Finished: at(to)} }

// ended is a pod that was made at 0, and whose container ran from 2 to that second.
func ended(phase string, second int64) Pod {
	p := Pod{Phase: phase, Created: at(0), Started: at(0), Containers: []Container{ran(2, second)}}
	if phase == "Failed" {
		p.Containers[0].Code = 1
	}
	return p
}

// exited returns the pod, whose container had that exit code.
func exited(p Pod, code int32) Pod {
	p.Containers[0].Code = code
	return p
}

// told returns the pod, told to go at that second with a grace of 30 s.
func told(p Pod, second int64) Pod {
	p.Deletion, p.Grace = at(second+30), new(int64(30))
	return p
}

// TestOf plays the ways in which real pods end, as a kubelet 1.34 and an API server show them.
func TestOf(t *testing.T) {
	disrupted := told(ended("Succeeded", 12), 10)
	disrupted.Deletion, disrupted.Grace, disrupted.Disrupted = time.Time{}, nil, true
	for _, tt := range []struct {
		name string
		pod  Pod
		want volume.Outcome
	}{
		{"exit 0", ended("Succeeded", 10), volume.Succeeded},
		{"exit 3", ended("Failed", 10), volume.Failed},
		{"deleted, exits 0 on TERM", told(ended("Succeeded", 11), 10), volume.Stopped},
		{"deleted, ends by TERM", told(exited(ended("Failed", 11), 143), 10), volume.Stopped},
		{"deleted, killed", told(exited(ended("Failed", 40), 137), 10), volume.Failed},
		{"deleted, exits 1 on TERM", told(exited(ended("Failed", 11), 1), 10), volume.Failed},
		{"deleted by force", told(Pod{Phase: "Running", Running: true}, 10), volume.OutcomeUnknown},
		{"activeDeadlineSeconds, exits 0", ended("Failed", 10), volume.Failed},
		// The next three look like success, or nearly. The first and the third cannot be told from it.
		{"over the limit of an emptyDir, exits 0", ended("Succeeded", 10), volume.Succeeded},
		{"evicted for node pressure, exits 0", disrupted, volume.Stopped},
		{"evicted after a restart of the kubelet, exits 0", ended("Succeeded", 10), volume.Succeeded},
		{"OOM", ended("Failed", 10), volume.Failed},
		{"OnFailure: 5, then 0", ended("Succeeded", 20), volume.Succeeded},
		{"Job", ended("Succeeded", 10), volume.Succeeded},
		{"Job past its deadline, exits 0", told(ended("Succeeded", 11), 10), volume.Stopped},
		{"deleted by who watches for success, seen before that", ended("Succeeded", 10), volume.Succeeded},
		{"deleted by who watches for success, seen later", told(ended("Succeeded", 10), 3600), volume.Succeeded},

		{"pending", Pod{Phase: "Pending"}, volume.OutcomeUnknown},
		{"running", Pod{Phase: "Running"}, volume.OutcomeUnknown},
		{"no phase", Pod{}, volume.OutcomeUnknown},
		{"lost", Pod{Phase: "Unknown"}, volume.OutcomeUnknown},
		{"a phase of another letter case", Pod{Phase: "succeeded"}, volume.OutcomeUnknown},
		{"disrupted and failed", Pod{Phase: "Failed", Disrupted: true}, volume.Failed},
	} {
		if got := Of(tt.pod); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestToldToGo: a pod that was told to go and ended by the signal that told it has not failed, unless anything
// of it had failed before, or else than by that signal.
func TestToldToGo(t *testing.T) {
	sidecar := func(code int32, from, to int64) func(*Pod) {
		return func(p *Pod) {
			p.Containers = append(p.Containers, Container{Started: at(from), Finished: at(to), Code: code})
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*Pod)
		want   volume.Outcome
	}{
		{"at once", func(*Pod) {}, volume.Stopped},
		{"at the end of its grace", func(p *Pod) { p.Containers[0].Finished = at(3630) }, volume.Stopped},
		{"by SIGINT, which its image names", func(p *Pod) { p.Containers[0].Code = 130 }, volume.Stopped},
		{"by SIGQUIT, which its image names", func(p *Pod) { p.Containers[0].Code = 131 }, volume.Stopped},
		{"with a sidecar that exits with 0", sidecar(0, 2, 3600), volume.Stopped},
		{"with a container that had succeeded long ago", sidecar(0, 2, 10), volume.Stopped},
		{"while it was still prepared", func(p *Pod) { p.Waiting = true }, volume.Stopped},
		{"drained or preempted, which a condition says", func(p *Pod) { p.Disrupted = true }, volume.Stopped},
		{"in the same second", func(p *Pod) { p.Containers[0].Finished = at(3600) }, volume.Stopped},
		{"by a node whose clock is a little early", func(p *Pod) { p.Containers[0].Finished = at(3680) }, volume.Stopped},
		{"with its grace cut to nothing", func(p *Pod) { p.Deletion, p.Grace = at(3600), new(int64(0)) }, volume.Stopped},

		{"not told", func(p *Pod) { p.Deletion, p.Grace = time.Time{}, nil }, volume.Failed},
		{"told without a grace", func(p *Pod) { p.Grace = nil }, volume.Failed},
		{"killed", func(p *Pod) { p.Containers[0].Code = 137 }, volume.Failed},
		{"crashed", func(p *Pod) { p.Containers[0].Code = 139 }, volume.Failed},
		{"out of memory", func(p *Pod) { p.Containers[0].OutOfMemory = true }, volume.Failed},
		{"a container was out of memory, and exits with 0", func(p *Pod) {
			sidecar(0, 2, 3600)(p)
			p.Containers[1].OutOfMemory = true
		}, volume.Failed},
		{"by such a signal long before it was told", func(p *Pod) { p.Containers[0].Finished = at(3500) }, volume.Failed},
		// A liveness probe had it killed, or a program that ends its parts by SIGTERM: and its owner deletes what has failed.
		{"by such a signal just before it was told", func(p *Pod) { p.Containers[0].Finished = at(3599) }, volume.Failed},
		{"with a container that ended by such a signal before", sidecar(143, 2, 3598), volume.Failed},
		{"long after its grace", func(p *Pod) { p.Containers[0].Finished = at(3700) }, volume.Failed},
		{"with a container that had failed before", sidecar(1, 2, 10), volume.Failed},
		{"with a container that fails meanwhile", sidecar(1, 2, 3601), volume.Failed},
		{"with a container that had failed and was started again", func(p *Pod) { p.FailedBefore = true }, volume.Failed},
		{"evicted", func(p *Pod) { p.Reason = "Evicted" }, volume.Failed},
		{"past its deadline, and deleted", func(p *Pod) { p.Reason = "DeadlineExceeded" }, volume.Failed},
		{"with a container that has no end", func(p *Pod) { p.Running = true }, volume.Failed},
		{"with its node away, and no container known", func(p *Pod) { p.Containers = nil }, volume.Failed},
		{"by a node whose clock is a day late", func(p *Pod) { p.Containers[0].Finished = at(-80000) }, volume.Failed},
	} {
		p := told(exited(ended("Failed", 3601), 143), 3600)
		tt.change(&p)
		if got := Of(p); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestClocks: where the clocks of node and API server do not show that a pod ended by itself, it was
// Stopped.
func TestClocks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Pod)
		want   volume.Outcome
	}{
		{"an hour later", func(*Pod) {}, volume.Succeeded},
		{"just after the margin", func(p *Pod) { *p = told(*p, 71) }, volume.Succeeded},
		{"just within the margin", func(p *Pod) { *p = told(*p, 70) }, volume.Stopped},
		{"in the same second", func(p *Pod) { *p = told(*p, 10) }, volume.Stopped},
		{"a second container ended later", func(p *Pod) { p.Containers = append(p.Containers, ran(2, 3601)) }, volume.Stopped},
		{"a container without an end", func(p *Pod) { p.Running = true }, volume.Stopped},
		{"a container that has not begun", func(p *Pod) { p.Waiting = true }, volume.Stopped},
		{"no containers", func(p *Pod) { p.Containers = nil }, volume.Stopped},
		{"no end", func(p *Pod) { p.Containers[0] = Container{} }, volume.Stopped},
		{"no grace", func(p *Pod) { p.Grace = nil }, volume.Stopped},
		{"a negative grace", func(p *Pod) { p.Grace = new(int64(-1)) }, volume.Stopped},
		{"a grace without end", func(p *Pod) { p.Grace = new(int64(1 << 62)) }, volume.Stopped},
		{"a grace longer than the pod was there", func(p *Pod) { p.Grace = new(int64(3600 + 30)) }, volume.Stopped},
		{"shortened to nothing", func(p *Pod) { p.Deletion, p.Grace = at(3600), new(int64(0)) }, volume.Succeeded},
		{"no creation", func(p *Pod) { p.Created = time.Time{} }, volume.Stopped},
		{"no start", func(p *Pod) { p.Started = time.Time{} }, volume.Stopped},
		{"the node's clock is a minute late", func(p *Pod) {
			p.Started, p.Containers = at(-60), []Container{ran(-58, -50)}
		}, volume.Stopped},
		{"the node's clock is a day late", func(p *Pod) {
			p.Started, p.Containers = at(-86400), []Container{ran(-86398, -86390)}
		}, volume.Stopped},
		{"the node's clock is a day early", func(p *Pod) {
			p.Started, p.Containers = at(86400), []Container{ran(86402, 86410)}
		}, volume.Stopped},
		{"the node's clock was set back before the container", func(p *Pod) { p.Containers[0] = ran(-100, -90) }, volume.Stopped},
		{"the node's clock was set back while it ran", func(p *Pod) { p.Containers[0] = ran(2, 1) }, volume.Stopped},
		{"the node's clock was set ahead while it ran", func(p *Pod) { p.Containers[0] = ran(2, 9999) }, volume.Stopped},
	} {
		p := told(ended("Succeeded", 10), 3600)
		tt.change(&p)
		if got := Of(p); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
