package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/daemon"
	"github.com/katbox/katbox/soak/internal/fakedriver"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/mounttest"
	"github.com/katbox/katbox/soak/internal/report"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/testbed"
)

// TestMain runs many runs at the same time: they wait most of the time.
func TestMain(m *testing.M) {
	host.RunHelper()
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// inProcess makes a [daemon.Driver] of a fake one.
type inProcess struct{ *fakedriver.Driver }

var _ daemon.Driver = inProcess{}

func (d inProcess) Kill() { _ = d.Driver.Kill() }

func (d inProcess) Usage() (host.Usage, bool) {
	cpu, rss, anonymous, peak, threads, ok := d.Driver.Usage()
	return host.Usage{CPU: cpu, RSS: rss, Anonymous: anonymous, Peak: peak, Threads: threads}, ok
}

func (d inProcess) Descriptors() (int, bool) { return d.Driver.Descriptors() }

func (d inProcess) Records() (int, error) { return d.Driver.Records(), nil }

func (d inProcess) Total() host.Usage {
	u, _ := d.Usage()
	return u
}

// late is how late the driver may delete. A restart may add so much to a
// deadline that a driver is found out which begins to count anew.
const late = 3 * time.Second

// rig is what a soak of a fake driver is played with.
type rig struct {
	options options
	layout  testbed.Layout
	driver  inProcess
}

func newRig(t *testing.T, w workload.Workload, change func(*fakedriver.Config)) rig {
	t.Helper()
	mounttest.Need(t)
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	// The path of t.TempDir is too long for a socket.
	dir, err := os.MkdirTemp("", "soak-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mounttest.ClearAway(t, dir) })
	l, err := testbed.MakeLayout(dir, "daemon.log")
	if err != nil {
		t.Fatal(err)
	}
	config := fakedriver.Config{
		Socket: l.Socket, AdminSocket: l.Admin, Work: l.Work, Kubelet: l.Kubelet, Lifespan: w.Driver.Lifespan.D(), Headroom: w.Driver.Headroom,
		OrphanGrace: w.Driver.OrphanGrace.D(), PruneInterval: w.Driver.PruneInterval.D(), Outside: l.Canaries,
		ReleaseGrace: w.Driver.ReleaseGrace.D(), MaxLifespan: w.Driver.MaxLifespan.D(), Quotas: w.Disk.Quotas,
		MaxPinned: w.Driver.Pinned(),
	}
	if w.Volumes.OnFailure > 0 {
		config.Outcomes = true
	}
	o := options{name: "trial", workload: w, seed: 11, tolerance: late}
	if w.Owned > 0 {
		if o.gateway, err = kubelet.ListenGateway(filepath.Join(dir, "gateway")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = o.gateway.Close() })
		config.Gateway, config.CA, config.Token = o.gateway.Target(), o.gateway.CA(), o.gateway.Token()
		config.MaxPerOwner = w.Driver.MaxPerOwner
	}
	change(&config)
	d, err := fakedriver.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return rig{o, l, inProcess{d}}
}

// play is a whole run.
func (r rig) play(t *testing.T) *report.Result {
	t.Helper()
	result, err := play(context.Background(), r.options, r.layout, r.driver, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// playFake runs a whole soak against a fake driver.
func playFake(t *testing.T, bug fakedriver.Bug, w workload.Workload) *report.Result {
	t.Helper()
	return newRig(t, w, func(c *fakedriver.Config) { c.Bug = bug }).play(t)
}

// isBusy reports whether the machine was too busy for a run, by the soak's own measure.
// What is broken in such a run says nothing.
func isBusy(result *report.Result) bool {
	for _, f := range result.FaultSpans {
		if f.Kind == workload.MachineSlow {
			return true
		}
	}
	return false
}

// byChance: a bug may not meet what would show it, so any run may be played again.
func byChance(*report.Result) bool { return true }

// playUntil plays a run until nothing is wrong with its result, some times at most as
// long as it may be played again. It returns the last result and what is wrong with it.
func playUntil(t *testing.T, again func(*report.Result) bool, play func() *report.Result, wrong func(*report.Result) []string) (
	*report.Result, []string,
) {
	t.Helper()
	const tries = 8
	for try := 1; ; try++ {
		result := play()
		problems := wrong(result)
		if len(problems) == 0 || !again(result) || try == tries {
			return result, problems
		}
		t.Logf("try %d: %s", try, strings.Join(problems, "\n"))
	}
}

// violations are all those of a run.
func violations(result *report.Result) (all []string) {
	for _, v := range result.Violations {
		all = append(all, fmt.Sprintf("%s: %s\n%s", v.Promise, v.What, strings.Join(v.Story, "\n")))
	}
	return all
}

// TestEachBugIsCaught: a checker that cannot fail proves nothing. Each bug
// breaks one promise, and a whole run finds that, and no other.
func TestEachBugIsCaught(t *testing.T) {
	t.Parallel()
	for _, bug := range fakedriver.Bugs() {
		if bug == fakedriver.CostsMore || bug.Breaks() == history.Limits {
			continue // see TestCostIsCompared and TestLimitsAreTried
		}
		t.Run(string(bug), func(t *testing.T) {
			t.Parallel()
			w := trial()
			if change := needs[bug].change; change != nil {
				change(&w)
			}
			_, problems := playUntil(t, byChance, func() *report.Result { return playFake(t, bug, w) },
				func(r *report.Result) []string { return caught(r, bug) })
			for _, p := range problems {
				t.Error(p)
			}
		})
	}
}

// caught says what is wrong with the result of a run: that the bug was not
// found, or that something else was.
func caught(result *report.Result, bug fakedriver.Bug) (problems []string) {
	for _, p := range result.Promises {
		switch {
		case p.Promise == bug.Breaks() && p.Broken == 0:
			problems = append(problems, fmt.Sprintf("no violation of: %s", p.Promise))
		case p.Promise != bug.Breaks() && !slices.Contains(needs[bug].also, p.Promise) && p.Broken > 0:
			problems = append(problems, fmt.Sprintf("%s: %d violations, though the bug does not break that", p.Promise, p.Broken))
		}
	}
	for _, v := range result.Violations {
		if v.Promise != bug.Breaks() && !slices.Contains(needs[bug].also, v.Promise) && len(problems) < 4 {
			problems = append(problems, fmt.Sprintf("%s: %s\n%s", v.Promise, v.What, strings.Join(v.Story, "\n")))
		}
	}
	return problems
}

// TestHonestDriver: what a bug needs to be seen does not make an honest driver
// look like a broken one.
func TestHonestDriver(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]workload.Fault{
		"node": {
			fault(workload.DaemonKill, 2, 50*time.Millisecond), fault(workload.KubeletRestart, 2, 50*time.Millisecond),
			fault(workload.DiskFull, 2, time.Second), fault(workload.NoInodes, 2, time.Second),
			{Kind: workload.ClockStep, Times: 1, Step: workload.Duration(-time.Hour)},
		},
		// Not while the disk is full: what is to befall a volume does not befall
		// one that its pod cannot write into.
		"volumes": {
			fault(workload.DaemonKill, 2, 50*time.Millisecond), fault(workload.KubeletRestart, 2, 50*time.Millisecond),
			fault(workload.BusyTarget, 2, time.Second), fault(workload.ForeignMount, 2, time.Second),
			fault(workload.NestedMount, 2, time.Second), fault(workload.PodRemoved, 2, 0),
			fault(workload.VolumeRemoved, 2, 0), fault(workload.VolumeSymlink, 2, 0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := trial()
			waves(&w)
			w.Calls = workload.Calls{Doubled: 0.3, Cancelled: 0.1, Reordered: 0.1, Bad: 0.5}
			w.Volumes.ReadOnly, w.DeletedEarly = 0.2, 0.1
			w.Contents.Links, w.Contents.Names, w.Contents.Special, w.Contents.Modes, w.Contents.Sparse = 0.5, 0.5, 0.5, 0.2, 0.2
			w.Driver.Headroom = 0.05
			w.Reading, w.Again = workload.Reading{Readers: 3, Removed: 0.1, Pinned: 0.1, Released: 0.1, Attached: 0.2}, 0.3
			w.Driver.ReleaseGrace = workload.Duration(200 * time.Millisecond)
			w.Failed, w.Volumes.OnFailure = 0.5, 0.3
			w.Volumes.Limits, w.Driver.MaxLifespan = 0.3, w.Driver.Lifespan+workload.Duration(2*time.Second)
			w.Faults = faults
			// By chance a run may lack something.
			again := func(r *report.Result) bool { return isBusy(r) || len(r.Violations) == 0 }
			_, problems := playUntil(t, again, func() *report.Result { return playFake(t, "", w) },
				func(r *report.Result) []string { return append(violations(r), lacks(r, w)...) })
			for _, p := range problems {
				t.Error(p)
			}
		})
	}
}

// TestHonestHoard: a driver that refuses to attach more than may be attached breaks no promise by that.
func TestHonestHoard(t *testing.T) {
	t.Parallel()
	w := trial()
	needs[fakedriver.HoardsAttached].change(&w)
	_, problems := playUntil(t, byChance, func() *report.Result { return playFake(t, "", w) }, func(r *report.Result) []string {
		problems := violations(r)
		if r.Deadlines.Attached == 0 {
			problems = append(problems, "nothing was attached")
		}
		return problems
	})
	for _, p := range problems {
		t.Error(p)
	}
}

// TestHonestEvictions: a driver that evicts what pods that succeeded left before what others did, and each
// in the order of its age, breaks no promise by that.
func TestHonestEvictions(t *testing.T) {
	t.Parallel()
	w := trial()
	needs[fakedriver.EvictsFailures].change(&w)
	_, problems := playUntil(t, isBusy, func() *report.Result { return playFake(t, "", w) }, func(r *report.Result) []string {
		problems := violations(r)
		if r.Deadlines.Evicted == 0 {
			problems = append(problems, "nothing was evicted")
		}
		return problems
	})
	for _, p := range problems {
		t.Error(p)
	}
}

// TestHonestOwners: a driver that keeps of each owner what the first and the last pods left breaks no promise by that, whatever people
// decide, when it is killed, and when the disk is short of room.
func TestHonestOwners(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*workload.Workload){
		"people": func(w *workload.Workload) {
			w.Reading = workload.Reading{Readers: 3, Removed: 0.1, Pinned: 0.1, Released: 0.1, Attached: 0.2}
			w.Faults = []workload.Fault{fault(workload.DaemonKill, 1, 50*time.Millisecond), fault(workload.PodRemoved, 4, 0)}
		},
		"pressure": func(w *workload.Workload) {
			w.Disk.Size, w.Contents.Files, w.Contents.Bytes, w.Driver.Headroom = 32<<20, 8, 256<<10, 0.9
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := trial()
			owned(&w)
			change(&w)
			_, problems := playUntil(t, isBusy, func() *report.Result { return playFake(t, "", w) }, func(r *report.Result) []string {
				problems := violations(r)
				if d := r.Deadlines; d.Repeated == 0 || w.Driver.Headroom > 0 && d.Evicted == 0 {
					problems = append(problems, fmt.Sprintf("%+v, want some to go because of others of their owner, and under pressure", d))
				}
				return problems
			})
			for _, p := range problems {
				t.Error(p)
			}
		})
	}
}

// TestHonestWithOpenFiles: a driver that keeps what makes no room breaks no promise by that.
func TestHonestWithOpenFiles(t *testing.T) {
	t.Parallel()
	w := trial()
	openFiles(&w)
	_, problems := playUntil(t, isBusy, func() *report.Result { return playFake(t, "", w) }, violations)
	for _, p := range problems {
		t.Error(p)
	}
}

// lacks says what did not happen in a run that had to.
func lacks(result *report.Result, w workload.Workload) (problems []string) {
	lack := func(format string, values ...any) { problems = append(problems, fmt.Sprintf(format, values...)) }
	if got := result.Summary; got.Pods != w.Pods || got.Doubled == 0 || got.Cancelled == 0 || got.Reordered == 0 {
		lack("%+v, want %d pods, and some calls doubled, cancelled and reordered", got, w.Pods)
	}
	if got := result.BadInput.Calls; got == 0 {
		lack("no calls with bad input")
	}
	if got := result.Deadlines; got.Expired == 0 || got.Following != 0 {
		lack("%+v, want some to expire and none to be left", got)
	}
	if got := result.Reading; got.Lists == 0 || got.Files == 0 || got.Tars == 0 || got.Ended == 0 || got.Refused == 0 {
		lack("%+v, want some of each to be read, to end with its volume, and to be refused", got)
	}
	if result.Deadlines.Attached == 0 {
		lack("no volume was attached")
	}
	for _, f := range result.Faults {
		if f.Done != f.Planned && f.Kind != workload.MachineSlow {
			lack("%s: %d of %d were done", f.Kind, f.Done, f.Planned)
		}
	}
	return problems
}
