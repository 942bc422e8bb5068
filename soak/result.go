package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// resultFormat is the version of the format of --json. It changes when a field
// goes or gets another meaning, not when one is added.
const resultFormat = 1

// result is a whole run for machines. Its JSON is what --json writes; names end
// in their unit, and fields that do not apply are missing.
type result struct {
	Format  int     `json:"format"`
	Verdict verdict `json:"verdict"`
	// Unproven is why the run could not come to its end, beside violations.
	Unproven string `json:"unproven,omitempty"`
	// Command makes the same decisions again.
	Command string    `json:"command"`
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	// Kept is the directory with the daemon's log; missing if it was removed.
	Kept    string        `json:"kept,omitempty"`
	Options resultOptions `json:"options"`
	Summary summary       `json:"summary"`
	Methods []methodCalls `json:"methods"`
	// Promises are all that there are, with a count of 0 for those that held.
	Promises []promiseCount `json:"promises"`
	// Violations are the first thousand; Promises counts all.
	Violations []brokenPromise `json:"violations"`
	Kills      []mark          `json:"kills"`
	Samples    []sample        `json:"samples"`
}

// verdict is the outcome of a run in a word.
type verdict string

const (
	clean    verdict = "clean"
	violated verdict = "violated"
	// unproven: nothing was broken, but the run did not come to its end.
	unproven verdict = "unproven"
)

// resultOptions are the options that decide what a run does.
type resultOptions struct {
	Seed            uint64  `json:"seed"`
	Pods            int     `json:"pods"`
	Parallel        int     `json:"parallel"`
	Volumes         int     `json:"volumes"`
	LifespanSeconds float64 `json:"lifespan_seconds"`
	Repeat          float64 `json:"repeat"`
	Cancel          float64 `json:"cancel"`
	Kills           int     `json:"kills"`
	TimeoutSeconds  float64 `json:"timeout_seconds"`
}

// summary has everything that is not about single calls.
type summary struct {
	Pods       int `json:"pods"`
	Volumes    int `json:"volumes"`
	Calls      int `json:"calls"`
	Errors     int `json:"errors"`
	Doubled    int `json:"doubled"`
	Cancelled  int `json:"cancelled"`
	Kills      int `json:"kills"`
	Violations int `json:"violations"`
	// Seen counts the markers that were there just before their deadline,
	// Expired the volumes whose data went in time.
	Seen    int `json:"seen"`
	Expired int `json:"expired"`
	// How long after the deadline data was seen to be gone.
	LateP50Millis float64 `json:"late_p50_ms"`
	LateMaxMillis float64 `json:"late_max_ms"`
	// The daemon over all its processes: the sum of their CPU time, and the
	// highest memory and number of threads of any.
	CPUSeconds       float64 `json:"cpu_seconds"`
	CPUMillisPerCall float64 `json:"cpu_ms_per_call"`
	PeakRSSBytes     int64   `json:"peak_rss_bytes"`
	PeakThreads      int     `json:"peak_threads"`
}

// methodCalls is about all calls of one CSI method. The latencies are those of
// the calls that succeeded, 0 if none did.
type methodCalls struct {
	Method    method  `json:"method"`
	Calls     int     `json:"calls"`
	P50Millis float64 `json:"p50_ms"`
	P90Millis float64 `json:"p90_ms"`
	P99Millis float64 `json:"p99_ms"`
	MaxMillis float64 `json:"max_ms"`
	// Codes counts the answers by the name of their gRPC code, OK among them.
	Codes map[string]int `json:"codes"`
}

// promiseCount is how often a promise was broken.
type promiseCount struct {
	Promise promise `json:"promise"`
	Broken  int     `json:"broken"`
}

// brokenPromise is a violation with its story.
type brokenPromise struct {
	Promise promise   `json:"promise"`
	At      time.Time `json:"at"`
	What    string    `json:"what"`
	// Volume and Pod are missing if it concerns no single volume.
	Volume string `json:"volume,omitempty"`
	Pod    string `json:"pod,omitempty"`
	// Calls are the volume's last calls until then, a line for each.
	Calls []string `json:"calls,omitempty"`
}

// outcome is all that is known after a run. Nothing may run any more that changes
// it.
type outcome struct {
	options  options
	stats    *stats
	findings *findings
	took     time.Duration
	// err is why the run did not come to its end, beside violations.
	err error
	// kept is the directory of the run, if it stays.
	kept string
}

// verdict says in a word what the run proved.
func (x outcome) verdict() verdict {
	switch {
	case x.findings.sum() > 0:
		return violated
	case x.err != nil:
		return unproven
	default:
		return clean
	}
}

// newResult turns the outcome into what --json writes.
func newResult(x outcome) *result {
	o, s, f := x.options, x.stats, x.findings
	r := &result{
		Format:  resultFormat,
		Verdict: x.verdict(),
		Command: "soak " + again(o),
		Began:   s.began,
		Seconds: seconds(x.took),
		Kept:    x.kept,
		Options: resultOptions{
			Seed: o.seed, Pods: o.pods, Parallel: o.parallel, Volumes: o.volumes, LifespanSeconds: o.lifespan.Seconds(),
			Repeat: o.repeat, Cancel: o.cancel, Kills: o.kills, TimeoutSeconds: o.timeout.Seconds(),
		},
		Summary: newSummary(s, f),
		// Lists without anything in them are [] and not null.
		Violations: []brokenPromise{},
		Kills:      append([]mark{}, s.marks...),
		Samples:    append([]sample{}, s.samples...),
	}
	if x.err != nil {
		r.Unproven = x.err.Error()
	}
	for _, name := range methods {
		r.Methods = append(r.Methods, newMethodCalls(name, s.method(name)))
	}
	for _, p := range promises {
		r.Promises = append(r.Promises, promiseCount{Promise: p, Broken: f.number(p)})
	}
	for _, v := range f.all() {
		r.Violations = append(r.Violations, brokenPromise{
			Promise: v.promise, At: v.at, What: v.what, Volume: v.volume, Pod: v.pod, Calls: v.calls,
		})
	}
	return r
}

func newSummary(s *stats, f *findings) summary {
	t := s.sums()
	return summary{
		Pods: s.pods, Volumes: s.volumes, Calls: t.calls, Errors: t.errors,
		Doubled: s.doubled, Cancelled: s.cancelled, Kills: s.kills, Violations: f.sum(),
		Seen: s.seen, Expired: s.expired,
		LateP50Millis: millis(quantile(s.late, 0.5)), LateMaxMillis: millis(quantile(s.late, 1)),
		CPUSeconds: seconds(s.consumed.cpu), CPUMillisPerCall: millis(perCall(s)),
		PeakRSSBytes: s.consumed.peak, PeakThreads: s.consumed.threads,
	}
}

func newMethodCalls(name method, m *methodStats) methodCalls {
	c := methodCalls{
		Method: name, Calls: m.calls, Codes: make(map[string]int),
		P50Millis: millis(quantile(m.latencies, 0.5)), P90Millis: millis(quantile(m.latencies, 0.9)),
		P99Millis: millis(quantile(m.latencies, 0.99)), MaxMillis: millis(quantile(m.latencies, 1)),
	}
	for code, n := range m.codes {
		c.Codes[code.String()] = n
	}
	return c
}

// writeJSON writes the result for machines.
func writeJSON(x outcome, w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(newResult(x)); err != nil {
		return fmt.Errorf("as JSON: %w", err)
	}
	return nil
}
