package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/fakedriver"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/mounttest"
	"github.com/katbox/katbox/soak/internal/report"
	"github.com/katbox/katbox/soak/internal/workload"
)

// TestCostIsCompared: a driver whose calls cost more with more volumes is found
// out. The checker of a real run wants thousands of calls, so that what goes on
// beside them does not count; the fake driver's CPU time is exact.
func TestCostIsCompared(t *testing.T) {
	t.Parallel()
	w := trial()
	// The volumes are published in some seconds in which none is retained, and
	// then unpublished in some more.
	w.Pods, w.Parallel, w.Arrival.Rate = 12, 12, 3
	w.Volumes.Min, w.Volumes.Max = 12, 12
	w.Calls.Doubled = 1
	w.Length.Mean = workload.Duration(6 * time.Second)
	for _, bug := range []fakedriver.Bug{fakedriver.CostsMore, ""} {
		t.Run("bug: "+string(bug), func(t *testing.T) {
			t.Parallel()
			again, wrong := byChance, func(r *report.Result) []string { return caught(r, bug) }
			if bug == "" {
				again, wrong = isBusy, violations
			}
			_, problems := playUntil(t, again, func() *report.Result {
				r := newRig(t, w, func(c *fakedriver.Config) { c.Bug = bug })
				r.options.enoughCalls = 150
				return r.play(t)
			}, wrong)
			for _, p := range problems {
				t.Error(p)
			}
		})
	}
}

// seen is what a driver and a kubelet saw of a run. The order in which requests
// arrive is the machine's.
type seen struct {
	readOnly map[string]bool   // by volume ID
	pods     map[string]string // by volume ID
	faults   []workload.FaultKind
	injected map[workload.FaultKind]int
}

func (a seen) equal(b seen) bool {
	return maps.Equal(a.readOnly, b.readOnly) && maps.Equal(a.pods, b.pods) &&
		slices.Equal(a.faults, b.faults) && maps.Equal(a.injected, b.injected)
}

// watch plays a run and tells what was seen of it.
func watch(t *testing.T, w workload.Workload, seed uint64) seen {
	t.Helper()
	var s seen
	result, broken := playUntil(t, isBusy, func() *report.Result {
		var mu sync.Mutex
		s = seen{readOnly: make(map[string]bool), pods: make(map[string]string), injected: make(map[workload.FaultKind]int)}
		r := newRig(t, w, func(c *fakedriver.Config) {
			c.Seen = func(id, pod string, readOnly bool) {
				mu.Lock()
				defer mu.Unlock()
				s.readOnly[id], s.pods[id] = readOnly, pod
			}
		})
		r.options.seed = seed
		return r.play(t)
	}, violations)
	for _, what := range broken {
		t.Error(what)
	}
	// No seed decides when the machine is slow.
	for _, f := range result.FaultSpans {
		if f.Kind != workload.MachineSlow {
			s.faults = append(s.faults, f.Kind)
		}
	}
	for _, f := range result.Faults {
		if f.Kind != workload.MachineSlow {
			s.injected[f.Kind] = f.Done
		}
	}
	return s
}

// TestSameSeedSamePods: it is the run itself that a seed decides, and not only
// the plan of it.
func TestSameSeedSamePods(t *testing.T) {
	t.Parallel()
	mounttest.Need(t)
	w := trial()
	w.Pods, w.Parallel = 14, 2
	w.Volumes.ReadOnly, w.Calls.Doubled = 0.5, 0.3
	w.Driver.Lifespan = workload.Duration(time.Second)
	w.Faults = []workload.Fault{
		fault(workload.DaemonKill, 2, 50*time.Millisecond), fault(workload.KubeletRestart, 1, 50*time.Millisecond),
		fault(workload.BusyTarget, 2, 100*time.Millisecond), {Kind: workload.ClockStep, Times: 1, Step: workload.Duration(time.Hour)},
	}
	const one, another = 7, 148
	for _, seed := range []uint64{one, another} {
		// Pods live for longer than a fault is delayed, so that faults after
		// different pods come in their order.
		faults := workload.NewPlan(w, seed).Faults()
		for i, f := range faults {
			if i > 0 && f.Pods <= faults[i-1].Pods+w.Parallel {
				t.Fatalf("seed %d has faults at the same time; take another", seed)
			}
		}
	}
	runs := make([]seen, 3)
	t.Run("runs", func(t *testing.T) {
		for i, seed := range []uint64{one, one, another} {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				runs[i] = watch(t, w, seed)
			})
		}
	})
	if t.Failed() {
		return
	}
	a, b, other := runs[0], runs[1], runs[2]
	if !a.equal(b) || len(a.readOnly) < w.Pods {
		t.Errorf("the same seed:\n%+v\n%+v", a, b)
	}
	if maps.Equal(a.readOnly, other.readOnly) || maps.Equal(a.pods, other.pods) || slices.Equal(a.faults, other.faults) {
		t.Errorf("another seed:\n%+v\n%+v", a, other)
	}
}

// only fails the test unless exactly the promise is broken, by what has the
// text.
func only(t *testing.T, result *report.Result, broken history.Promise, text string) {
	t.Helper()
	if result.Verdict != report.Violated || len(result.Violations) == 0 {
		t.Fatalf("verdict %s with %d violations, want one of: %s", result.Verdict, len(result.Violations), broken)
	}
	for _, v := range result.Violations {
		if v.Promise != broken || !strings.Contains(v.What, text) {
			t.Errorf("%s: %s, want %s: %s", v.Promise, v.What, broken, text)
		}
	}
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	w := trial()
	// No volume is over by then.
	w.Timeout = workload.Duration(2 * time.Second)
	w.Driver.Lifespan = w.Timeout
	r := newRig(t, w, func(*fakedriver.Config) {})
	result, err := play(context.Background(), r.options, r.layout, r.driver, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	only(t, result, history.Completed, "did not end in time, within 2s")
	if _, err := os.Stat(result.Kept); result.Kept != r.layout.Dir || err != nil {
		t.Errorf("kept is %q (%v), want %s", result.Kept, err, r.layout.Dir)
	}
}

func TestInterruption(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	w := trial()
	w.Pods, w.Parallel = 1000, 4
	number := 0
	var mu sync.Mutex
	r := newRig(t, w, func(c *fakedriver.Config) {
		c.Seen = func(string, string, bool) {
			mu.Lock()
			defer mu.Unlock()
			if number++; number == w.Parallel {
				interrupt()
			}
		}
	})
	result, err := play(ctx, r.options, r.layout, r.driver, io.Discard)
	if !errors.Is(err, errInterrupted) {
		t.Errorf("error %v, want %v", err, errInterrupted)
	}
	if result.Verdict != report.Unproven || len(result.Violations) > 0 {
		t.Errorf("verdict %s, violations %+v, want none and %s", result.Verdict, result.Violations, report.Unproven)
	}
	if mounts, err := host.MountsBelow(r.layout.Dir); err != nil || len(mounts) > 0 {
		t.Errorf("mounts are left: %v, %v", mounts, err)
	}
}

// stillborn is a driver that does not start.
type stillborn struct{ inProcess }

func (stillborn) Start(context.Context) error { return errors.New("no such device") }

func TestDriverThatDoesNotStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, trial(), func(*fakedriver.Config) {})
	result, err := play(context.Background(), r.options, r.layout, stillborn{r.driver}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	only(t, result, history.Lives, "no such device")
}
