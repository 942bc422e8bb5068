package report

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// exampleDir is for who changes the page: charts have to be looked at.
var exampleDir = flag.String("examples", "", "write example pages into this directory, to look at them")

const exampleYAML = `pods: 60000
parallel: 110
arrival: {rate: 100, burst: 20}
length: {distribution: lognormal, mean: 500ms, max: 10s}
volumes: {min: 1, max: 3, readOnly: 0.1}
driver: {lifespan: 1m0s, headroom: 0.2, pruneInterval: 1s, orphanGrace: 10s}
disk: {kind: ext4, size: 2Gi, inodes: 400000}
faults:
- {kind: daemon-kill, times: 6, for: 2s}
- {kind: disk-full, times: 2, for: 20s}
timeout: 30m0s
`

// generated makes up a run of so many seconds, with or without faults of the
// node and broken promises.
func generated(length int, faults bool) *Result {
	random := rand.New(rand.NewPCG(1, 2))
	const podsPerSecond, lifespan = 100.0, 60.0
	total := float64(length)
	var timeline history.Timeline
	var planned []workload.Fault
	if faults {
		for kind, times := range map[workload.FaultKind]int{
			workload.DaemonKill: 6, workload.DiskFull: 1, workload.NoInodes: 1, workload.SlowDisk: 1, workload.ClockStep: 3,
			workload.KubeletRestart: 2, workload.BusyTarget: 12,
		} {
			planned = append(planned, workload.Fault{Kind: kind, Times: times})
		}
	}
	r := New(Options{
		Name: "rough", Seed: 4711, YAML: exampleYAML, Command: "soak --seed 4711 --workload rough --driver bin/katbox",
		Machine: "Linux 6.12.0, 2 processors, ext4 of 2 GiB on a loop device",
		Workload: workload.Workload{
			Pods: int(podsPerSecond * total), Parallel: 110,
			Driver: workload.Driver{Lifespan: workload.Duration(lifespan * time.Second), Headroom: 0.2},
			Faults: planned,
		},
		Sources: Sources{Timeline: &timeline, Findings: &history.Findings{}},
	})
	r.began = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	var spans []faultSpan
	if faults {
		span := func(kind workload.FaultKind, from, length float64, what string) {
			f := faultSpan{Kind: kind, From: from * total, What: what}
			if length > 0 {
				to := f.From + length
				f.To = &to
			}
			spans = append(spans, f)
		}
		for n := range 6 {
			span(workload.DaemonKill, 0.08+float64(n)*0.15, 2.4, "SIGKILL, ready again after 1.1s")
		}
		span(workload.DiskFull, 0.3, 0.05*total, "1.4 GiB written by pod-3017")
		span(workload.NoInodes, 0.5, 0.04*total, "")
		span(workload.SlowDisk, 0.65, 0.06*total, "frozen 90% of the time")
		span(workload.ClockStep, 0.2, 0, "by 1h0m0s")
		span(workload.ClockStep, 0.75, 0, "by -30m0s")
		span(workload.KubeletRestart, 0.42, 3, "")
		span(workload.KubeletRestart, 0.9, 0, "")
		spans[len(spans)-1].To = nil
	}
	in := func(kind workload.FaultKind, at float64) bool {
		for _, f := range spans {
			if f.Kind == kind && at >= f.From && (f.To == nil && kind.Lasting() || f.To != nil && at < *f.To) {
				return true
			}
		}
		return false
	}
	var pods, calls, errors, expired, evicted, cpu float64
	published := []float64{} // by sample, cumulative
	for at, step := 0.0, 0.0; at <= total; at += step {
		step = sampleInterval(time.Duration(at * float64(time.Second))).Seconds()
		away := in(workload.DaemonKill, at)
		speed := podsPerSecond * (1 + 0.1*random.NormFloat64())
		slow := 1.0
		if in(workload.SlowDisk, at) {
			speed, slow = speed/4, 40
		}
		if away {
			speed, errors = 0, errors+60*step
		}
		pods, calls, errors = min(pods+speed*step, podsPerSecond*total), calls+speed*4.3*step, errors+speed*0.05*step
		cpu += speed * 4.3 * step * 0.0007
		published = append(published, pods*2)
		before := 0.0
		if back := len(published) - int(lifespan/step); back >= 0 {
			before = published[back]
		}
		free, inodes := uint64(1800<<20-int(pods*2-before)*20000), uint64(380000-int(pods*2-before)*5)
		if in(workload.DiskFull, at) {
			free = 30 << 20
			evicted += speed * step * 2
			before = max(before, pods*2-1000)
		} else if before > evicted {
			expired = before - evicted
		}
		if in(workload.NoInodes, at) {
			inodes = 9000
		}
		disk := Disk{FreeBytes: free, TotalBytes: 2 << 30, FreeInodes: inodes, TotalInodes: 400000}
		s := sample{
			Seconds: at, Pods: int(pods), Calls: int(calls), Errors: int(errors), Expired: int(max(expired, 0)), Evicted: int(evicted),
			Running: int(50 * (1 + 0.1*random.NormFloat64())), Mounted: int(100 * (1 + 0.1*random.NormFloat64())), Retained: int(pods*2 - before),
			Disk: &diskSample{disk.FreeBytes, disk.TotalBytes, disk.FreeInodes, disk.TotalInodes, disk.pressure(0.2)},
		}
		if faults && at > 0.55*total {
			s.Violations = 3
		}
		if !away {
			latency := func(base float64) *interval {
				p50 := base * slow * math.Exp(0.2*random.NormFloat64())
				return &interval{Calls: int(speed * step * 2), P50Millis: p50, P99Millis: p50 * (6 + 3*random.ExpFloat64())}
			}
			s.Publish, s.Unpublish = latency(2.4), latency(1.7)
			rss := int64(38+12*at/total+random.Float64()*4) << 20
			s.Driver = &driverSample{CPUSeconds: cpu, RSSBytes: rss, RSSAnonBytes: rss * 6 / 10, Threads: 11 + int(3*math.Sin(at/40))}
		}
		r.samples = append(r.samples, s)
	}
	r.Count.PodsOver.Store(int64(pods))
	r.Count.Containers.Store(int64(pods * 0.97))
	r.Count.Volumes.Store(int64(pods * 2))
	r.Count.Doubled.Store(int64(pods * 0.3))
	r.Count.Reordered.Store(int64(pods * 0.04))
	for n := range int(min(pods*4, 40000)) {
		name := []history.Method{history.GetCapabilities, history.Publish, history.Unpublish, history.Publish}[n%4]
		took := time.Duration(float64(2*time.Millisecond) * math.Exp(random.NormFloat64()))
		one := history.Call{Method: name, From: r.began, To: r.began.Add(took), Bad: n%100 == 1}
		switch {
		case one.Bad:
			one.Err = status.Error(codes.InvalidArgument, "volume ID")
		case n%19 == 2:
			one.Err, one.Cancelled = status.Error([]codes.Code{codes.Canceled, codes.Unavailable, codes.Aborted,
				codes.DeadlineExceeded}[n%4+n/19%2*(1-n%4/3)], ""), true
		}
		r.Called(one)
	}
	r.cpu, r.peak, r.threads = time.Duration(cpu*float64(time.Second)), 57<<20, 15
	kept := Kept{Following: 0, Seen: int(pods * 1.8), Expired: int(expired), Evicted: int(evicted)}
	for range 5000 {
		kept.Lateness = append(kept.Lateness, time.Duration(float64(300*time.Millisecond)*random.Float64()))
	}
	r.options.Sources.Kept = func() Kept { return kept }
	if faults {
		v := &history.Volume{ID: "csi-" + fmt.Sprintf("%064x", 77), Pod: "1b4e28ba-2fa1-11d2-883f-0016d3cca427"}
		v.End(v.Begin(history.Publish, false), nil)
		v.Note("the marker was written")
		r.options.Sources.Findings.Add(history.PublishedData, v,
			"the marker is not there while the pod lives:\nopen /tmp/x: no such file or directory")
		r.options.Sources.Findings.Add(history.PublishedData, v, "again")
		r.options.Sources.Findings.Add(history.NoLeak, nil, "a mount is left over: /tmp/soak/pods/x")
	}
	var injected map[workload.FaultKind]int
	if faults {
		injected = map[workload.FaultKind]int{workload.BusyTarget: 12}
	}
	x := newResult(r, Outcome{Injected: injected}, time.Duration(length)*time.Second)
	x.FaultSpans = append(x.FaultSpans, spans...)
	for _, f := range spans {
		if i := slices.IndexFunc(x.Faults, func(c faultCount) bool { return c.Kind == f.Kind }); i >= 0 {
			x.Faults[i].Done++
		}
	}
	return x
}

func TestExamples(t *testing.T) {
	if *exampleDir == "" {
		t.Skip("no test: it writes reports for people to look at; run it with -examples DIR")
	}
	for name, x := range map[string]*Result{"rough": generated(600, true), "clean": generated(20, false)} {
		f, err := os.Create(filepath.Join(*exampleDir, name+".html"))
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Page(f); err != nil {
			t.Error(err)
		}
		f.Close()
		x.Terminal(t.Output())
	}
}
