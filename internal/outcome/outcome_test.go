package outcome

import (
	"testing"
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// at is a time on the clock of the API server or the node, in seconds.
func at(seconds int64) time.Time { return time.Unix(1_800_000_000+seconds, 0) }

// ended is a pod that was made at 0, and whose container ran from 2 to that second.
func ended(phase string, second int64) Pod {
	return Pod{Phase: phase, Created: at(0), Started: at(0), Containers: []Container{{at(2), at(second)}}}
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
		{"deleted, killed", told(ended("Failed", 40), 10), volume.Failed},
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
		{"a second container ended later", func(p *Pod) { p.Containers = append(p.Containers, Container{at(2), at(3601)}) }, volume.Stopped},
		{"a container without an end", func(p *Pod) { p.Running = true }, volume.Stopped},
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
			p.Started, p.Containers = at(-60), []Container{{at(-58), at(-50)}}
		}, volume.Stopped},
		{"the node's clock is a day late", func(p *Pod) {
			p.Started, p.Containers = at(-86400), []Container{{at(-86398), at(-86390)}}
		}, volume.Stopped},
		{"the node's clock is a day early", func(p *Pod) {
			p.Started, p.Containers = at(86400), []Container{{at(86402), at(86410)}}
		}, volume.Stopped},
		{"the node's clock was set back before the container", func(p *Pod) { p.Containers[0] = Container{at(-100), at(-90)} }, volume.Stopped},
		{"the node's clock was set back while it ran", func(p *Pod) { p.Containers[0] = Container{at(2), at(1)} }, volume.Stopped},
		{"the node's clock was set ahead while it ran", func(p *Pod) { p.Containers[0] = Container{at(2), at(9999)} }, volume.Stopped},
	} {
		p := told(ended("Succeeded", 10), 3600)
		tt.change(&p)
		if got := Of(p); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
