package report

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/quantile"
	"github.com/katbox/katbox/soak/internal/workload"
)

// newResult sums a run up that took so long.
func newResult(r *Run, end Outcome, took time.Duration) *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.options
	x := &Result{
		Format: resultFormat, Verdict: Clean, Command: o.Command, Seed: o.Seed,
		Began: r.began, Seconds: seconds(took), Machine: o.Machine, Kept: end.Dir,
		Workload: workloadFacts{
			Name: o.Name, Pods: o.Workload.Pods, Parallel: o.Workload.Parallel,
			LifespanSeconds: seconds(o.Workload.Driver.Lifespan.D()), Headroom: o.Workload.Driver.Headroom, YAML: o.YAML,
		},
		Summary:   r.summary(took),
		BadInput:  badInput{Calls: r.calls.bad.number, Codes: names(r.calls.bad.codes)},
		Deadlines: sumDeadlines(o.Sources.kept(), r.samples),
		Reading:   reading(o.Sources.read()),
		Driver:    r.driver(end.CPU),
		Promises:  countPromises(o.Sources.Findings),
		// Lists without anything in them are [] and not null.
		Violations: []violation{},
		Faults:     countFaults(o.Workload.Faults, o.Sources.spans(), end.Injected),
		FaultSpans: []faultSpan{},
		Samples:    append([]sample{}, r.samples...),
	}
	for _, name := range history.Methods {
		x.Methods = append(x.Methods, newMethodCalls(name, r.calls.methods[name]))
	}
	if o.Sources.Findings != nil {
		for _, v := range o.Sources.Findings.All() {
			x.Violations = append(x.Violations, violation(v))
		}
	}
	for _, s := range o.Sources.spans() {
		x.FaultSpans = append(x.FaultSpans, newFaultSpan(s, r.began))
	}
	if end.Unproven != nil {
		x.Verdict, x.Unproven = Unproven, end.Unproven.Error()
	}
	if x.Summary.Violations > 0 {
		x.Verdict = Violated
	}
	return x
}

func (r *Run) summary(took time.Duration) summary {
	s := summary{
		Pods: int(r.Count.PodsOver.Load()), Containers: int(r.Count.Containers.Load()), Volumes: int(r.Count.Volumes.Load()),
		Calls: r.calls.answered, Errors: r.calls.errors,
		Doubled: int(r.Count.Doubled.Load()), Cancelled: r.calls.cancelled, Reordered: int(r.Count.Reordered.Load()),
		Overfilled: int(r.Count.Overfilled.Load()),
		Violations: r.options.Sources.violations(),
	}
	if took > 0 {
		s.PodsPerSecond, s.CallsPerSecond = float64(s.Pods)/took.Seconds(), float64(s.Calls)/took.Seconds()
	}
	return s
}

func (r *Run) driver(cpu time.Duration) driver {
	cpu = cmp.Or(cpu, r.cpu)
	d := driver{CPUSeconds: seconds(cpu), PeakRSSBytes: r.peak, PeakThreads: r.threads}
	if n := r.calls.answered + r.calls.bad.number; n > 0 {
		d.CPUMillisPerCall = millis(cpu / time.Duration(n))
	}
	return d
}

// newMethodCalls sums the calls of a method up; m is nil if there were none.
func newMethodCalls(name history.Method, m *method) methodCalls {
	if m == nil {
		m = &method{}
	}
	slices.Sort(m.took)
	return methodCalls{
		Method: name, Calls: m.number, Codes: names(m.codes),
		P50Millis: millis(quantile.Of(m.took, 0.5)), P90Millis: millis(quantile.Of(m.took, 0.9)),
		P99Millis: millis(quantile.Of(m.took, 0.99)), MaxMillis: millis(quantile.Of(m.took, 1)),
	}
}

func names(counts map[codes.Code]int) map[string]int {
	named := make(map[string]int, len(counts))
	for code, n := range counts {
		named[code.String()] = n
	}
	return named
}

func sumDeadlines(k Kept, samples []sample) deadlines {
	late := slices.Sorted(slices.Values(k.Lateness))
	d := deadlines{
		Seen: k.Seen, Expired: k.Expired, Evicted: k.Evicted, Removed: k.Removed, Repeated: k.Repeated, Attached: k.Attached,
		Following:     k.Following,
		LateP50Millis: millis(quantile.Of(late, 0.5)), LateP99Millis: millis(quantile.Of(late, 0.99)),
		LateMaxMillis: millis(quantile.Of(late, 1)), Late: byLateness(late),
	}
	for _, s := range samples {
		if s.Disk != nil && (d.LowestPressure == nil || s.Disk.Pressure < *d.LowestPressure) {
			lowest := s.Disk.Pressure
			d.LowestPressure = &lowest
		}
	}
	return d
}

// byLateness divides times in their order at 10, 20, 50, 100 milliseconds and so on, up to the longest.
func byLateness(late []time.Duration) []lateVolumes {
	list := []lateVolumes{}
	for to, n := 10*time.Millisecond, 0; len(late) > 0; n++ {
		at, _ := slices.BinarySearch(late, to+1)
		list = append(list, lateVolumes{millis(to), at})
		late = late[at:]
		to = to * 2
		if n%3 == 1 {
			to += to / 4 // from 2 to 5
		}
	}
	return list
}

func countPromises(f *history.Findings) []promiseCount {
	list := make([]promiseCount, 0, len(history.Promises))
	for _, p := range history.Promises {
		one := promiseCount{Promise: p}
		if f != nil {
			one.Broken = f.Number(p)
		}
		list = append(list, one)
	}
	return list
}

// countFaults lists the kinds in the order of the workload, then those that
// were not planned.
func countFaults(planned []workload.Fault, spans []history.Span, injected map[workload.FaultKind]int) []faultCount {
	list := []faultCount{}
	at := func(k workload.FaultKind) *faultCount {
		i := slices.IndexFunc(list, func(c faultCount) bool { return c.Kind == k })
		if i < 0 {
			i = len(list)
			list = append(list, faultCount{Kind: k})
		}
		return &list[i]
	}
	for _, f := range planned {
		at(f.Kind).Planned += f.Times
	}
	for _, s := range spans {
		at(s.Kind).Done++
	}
	unplanned := len(list)
	for kind, n := range injected {
		at(kind).Done += n
	}
	slices.SortFunc(list[unplanned:], func(a, b faultCount) int { return cmp.Compare(a.Kind, b.Kind) })
	return list
}

func newFaultSpan(s history.Span, began time.Time) faultSpan {
	f := faultSpan{Kind: s.Kind, From: seconds(s.From.Sub(began)), What: s.What}
	if !s.To.IsZero() && s.Kind.Lasting() {
		to := seconds(s.To.Sub(began))
		f.To = &to
	}
	return f
}
