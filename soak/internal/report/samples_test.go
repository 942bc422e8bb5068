package report

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

func TestSamplesAreOfTheirInterval(t *testing.T) {
	var f history.Findings
	r := New(Options{Sources: Sources{Findings: &f}})
	take := func() sample {
		r.takeSample()
		return r.samples[len(r.samples)-1]
	}
	if first := take(); first.Publish != nil || first.Calls != 0 || first.Driver != nil || first.Disk != nil {
		t.Errorf("before anything: %+v", first)
	}
	for n := range 100 {
		r.Called(finished(history.Publish, time.Duration(100-n)*time.Millisecond, nil))
	}
	r.Called(finished(history.Unpublish, time.Hour, errors.New("no")))
	f.Add(history.NoLeak, nil, "")
	second := take()
	if second.Calls != 101 || second.Errors != 1 || second.Violations != 1 || second.Unpublish != nil {
		t.Errorf("after 100 publishes and a failed unpublish: %+v", second)
	}
	if want := (interval{Calls: 100, P50Millis: 50, P99Millis: 99}); second.Publish == nil || *second.Publish != want {
		t.Errorf("publish %+v, want %+v", second.Publish, want)
	}
	r.Called(finished(history.Publish, 7*time.Millisecond, nil))
	third := take()
	if want := (interval{Calls: 1, P50Millis: 7, P99Millis: 7}); third.Publish == nil || *third.Publish != want {
		t.Errorf("publish %+v, want only the call since the last sample", third.Publish)
	}
	if got := r.End(Outcome{}).Methods[3]; got.Method != history.Publish || got.Calls != 101 || got.MaxMillis != 100 || got.P50Millis != 50 {
		t.Errorf("%+v, want all 101 publishes", got)
	}
}

func TestBadInputIsCountedApart(t *testing.T) {
	r := New(Options{})
	bad := finished(history.Publish, time.Hour, errors.New("no"))
	bad.Bad = true
	r.Called(bad)
	bad.Err = nil
	r.Called(bad)
	x := r.End(Outcome{CPU: time.Second})
	if x.Summary.Calls != 0 || x.Summary.Errors != 0 || x.Methods[3].Calls != 0 || x.Samples[0].Publish != nil {
		t.Errorf("%+v %+v: calls with bad input are among the others", x.Summary, x.Methods[3])
	}
	if x.BadInput.Calls != 2 || x.BadInput.Codes[codes.OK.String()] != 1 || x.BadInput.Codes[codes.Unknown.String()] != 1 {
		t.Errorf("%+v, want both", x.BadInput)
	}
	if x.Driver.CPUMillisPerCall != 500 {
		t.Errorf("%g ms for each call, want them to share the CPU time", x.Driver.CPUMillisPerCall)
	}
}

func TestOnlyWhatWasCancelledCounts(t *testing.T) {
	r := New(Options{})
	for _, cancelled := range []bool{true, false} {
		for _, err := range []error{nil, errors.New("no")} {
			c := finished(history.Publish, time.Millisecond, err)
			c.Cancelled = cancelled
			r.Called(c)
		}
	}
	if got := r.End(Outcome{}).Summary; got.Calls != 4 || got.Errors != 2 || got.Cancelled != 1 {
		t.Errorf("%+v, want 4 calls, 2 errors, 1 of them cancelled", got)
	}
}

func TestSamplingGetsSlower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{})
		stop := r.StartSampling()
		time.Sleep(2*time.Hour + time.Second)
		stop()
		var at []float64
		for _, s := range r.samples {
			at = append(at, s.Seconds)
		}
		for _, want := range [][2]float64{{0, 0.2}, {59.8, 60}, {60, 61}, {3599, 3600}, {3600, 3610}, {7190, 7200}} {
			if i := slices.Index(at, want[0]); i < 0 || i+1 == len(at) || at[i+1] != want[1] {
				t.Errorf("no samples at %g s and right after it at %g s", want[0], want[1])
			}
		}
		if want := 300 + 3540 + 361; len(at) != want {
			t.Errorf("%d samples, want %d", len(at), want)
		}
	})
}

// TestDriverOverRestarts: the highest numbers of any process and the CPU time
// of all stay when the driver is gone.
func TestDriverOverRestarts(t *testing.T) {
	used := []Usage{
		{CPU: time.Second, RSS: 50, Peak: 70, Threads: 9}, {CPU: 3 * time.Second, RSS: 20, Peak: 30, Threads: 12},
	}
	var now *Usage
	r := New(Options{Sources: Sources{Usage: func() (Usage, bool) {
		if now == nil {
			return Usage{}, false
		}
		return *now, true
	}}})
	for i := range used {
		now = &used[i]
		r.takeSample()
	}
	now = nil
	if got, want := r.End(Outcome{}).Driver, (driver{CPUSeconds: 3, PeakRSSBytes: 70, PeakThreads: 12}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := r.End(Outcome{CPU: 4 * time.Second}).Driver.CPUSeconds; got != 4 {
		t.Errorf("%g s, want the 4 s that are known after the end", got)
	}
}

func TestLatenessIsNotChanged(t *testing.T) {
	late := []time.Duration{3 * time.Millisecond, 1 * time.Millisecond, 2 * time.Millisecond}
	got := sumDeadlines(Kept{Lateness: late}, nil)
	if got.LateP50Millis != 2 || got.LateMaxMillis != 3 || got.LowestPressure != nil {
		t.Errorf("%+v, want 2 and 3 ms", got)
	}
	if late[0] != 3*time.Millisecond {
		t.Errorf("%v: sorted in its owner's memory", late)
	}
}

func TestPressure(t *testing.T) {
	for name, test := range map[string]struct {
		disk     Disk
		headroom float64
		want     float64
	}{
		"all free":            {Disk{100, 100, 100, 100}, 0.25, 1},
		"just the headroom":   {Disk{25, 100, 100, 100}, 0.25, 1},
		"half of it":          {Disk{12, 96, 100, 100}, 0.25, 0.5},
		"full":                {Disk{0, 100, 100, 100}, 0.25, 0},
		"inodes are scarcer":  {Disk{12, 96, 6, 96}, 0.25, 0.25},
		"inodes made at need": {Disk{12, 96, 0, 0}, 0.25, 0.5},
		"no headroom":         {Disk{0, 100, 0, 100}, 0, 1},
	} {
		if got := test.disk.pressure(test.headroom); got != test.want {
			t.Errorf("%s: %g, want %g", name, got, test.want)
		}
	}
}

// TestManyAtOnce is for the race detector.
func TestManyAtOnce(t *testing.T) {
	var timeline history.Timeline
	r := New(Options{Workload: workload.Workload{Pods: 1}, Sources: Sources{Timeline: &timeline, Findings: &history.Findings{}}})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				r.Called(finished(history.Publish, time.Millisecond, nil))
				r.Count.PodsOver.Add(1)
				r.takeSample()
				r.standing()
			}
		})
	}
	group.Wait()
	if x := r.End(Outcome{}); x.Summary.Calls != 200 || x.Summary.Pods != 200 || len(x.Samples) != 201 {
		t.Errorf("%+v with %d samples, want 200 calls and pods and 201 samples", x.Summary, len(x.Samples))
	}
}
