package report

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// TestMain makes the golden files the same in every time zone.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// finished is a call that took so long.
func finished(m history.Method, took time.Duration, err error) history.Call {
	now := time.Now()
	return history.Call{Method: m, From: now.Add(-took), To: now, Err: err}
}

// smallResult is a run in which there was some of everything, so that each
// field of the result has a value. In a bubble its times are always the same.
func smallResult(t *testing.T) *Result {
	var x *Result
	synctest.Test(t, func(*testing.T) { x = runSmall() })
	return x
}

// interrupted ends a run because a signal came.
type interrupted struct{}

func (interrupted) Error() string { return "interrupted" }

func runSmall() *Result {
	var timeline history.Timeline
	var findings history.Findings
	used, runs := Usage{CPU: 250 * time.Millisecond, RSS: 32 << 20, Anonymous: 16 << 20, Peak: 40 << 20, Threads: 9}, true
	disk := Disk{FreeBytes: 1 << 29, TotalBytes: 1 << 30, FreeInodes: 900, TotalInodes: 1000}
	r := New(Options{
		Name: "small", Seed: 7, YAML: "pods: 4\n", Command: "soak --seed 7 --workload small", Machine: "Linux 6.1, 2 processors",
		Workload: workload.Workload{
			Pods: 4, Parallel: 2,
			Driver: workload.Driver{Lifespan: workload.Duration(20 * time.Second), Headroom: 0.2},
			Faults: []workload.Fault{
				{Kind: workload.BusyTarget, Times: 3}, {Kind: workload.DaemonKill, Times: 1}, {Kind: workload.SlowDisk, Times: 1},
			},
		},
		Sources: Sources{
			Timeline: &timeline, Findings: &findings,
			Usage: func() (Usage, bool) { return used, runs },
			Disk:  func() (Disk, bool) { return disk, true },
			Kept: func() Kept {
				return Kept{Following: 1, Seen: 5, Expired: 4, Evicted: 2, Lateness: []time.Duration{40 * time.Millisecond, 20 * time.Millisecond}}
			},
		},
	})
	r.takeSample()
	for n := range 4 {
		r.Called(finished(history.Publish, time.Duration(n+1)*time.Millisecond, nil))
	}
	late := finished(history.Unpublish, time.Second, status.Error(codes.Canceled, "given up"))
	late.Cancelled = true
	r.Called(late)
	bad := finished(history.Publish, time.Millisecond, status.Error(codes.InvalidArgument, "volume ID"))
	bad.Bad = true
	r.Called(bad)
	r.Count.PodsOver.Store(3)
	r.Count.PodsRunning.Store(1)
	r.Count.Containers.Store(4)
	r.Count.Volumes.Store(6)
	r.Count.Mounted.Store(2)
	r.Count.Doubled.Store(2)
	r.Count.Reordered.Store(1)

	time.Sleep(time.Second)
	over := timeline.Begin(workload.DaemonKill, "SIGKILL")
	time.Sleep(250 * time.Millisecond)
	over()
	timeline.Begin(workload.ClockStep, "by 1h0m0s")()
	timeline.Begin(workload.SlowDisk, "") // until the end
	v := &history.Volume{ID: "csi-<script>alert(1)</script>", Pod: "uid-1"}
	v.End(v.Begin(history.Publish, false), nil)
	v.Note("</pre><script>alert(2)</script>")
	findings.Add(history.PublishedData, v, "<b>not there</b>")
	disk.FreeInodes, runs = 100, false
	time.Sleep(750 * time.Millisecond)
	return r.End(Outcome{Unproven: interrupted{}, Dir: "/kept/here", CPU: 300 * time.Millisecond, Injected: map[workload.FaultKind]int{
		workload.BusyTarget: 2, workload.VolumeRemoved: 1,
	}})
}

// emptyResult is a run that was over before it began.
func emptyResult(err error, findings *history.Findings) *Result {
	return New(Options{Command: "soak --seed 0", Sources: Sources{Findings: findings}}).End(Outcome{Unproven: err})
}
