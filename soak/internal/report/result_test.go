package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestResultFormat holds the names of the fields: somebody's program reads them.
func TestResultFormat(t *testing.T) {
	var got bytes.Buffer
	if err := smallResult(t).JSON(&got); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "result.json")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the format differs from %s; if that is meant, run the test with -update:\n%s", golden, &got)
	}
}

func TestResultRoundTrip(t *testing.T) {
	sent := smallResult(t)
	var text bytes.Buffer
	if err := sent.JSON(&text); err != nil {
		t.Fatal(err)
	}
	var got Result
	decoder := json.NewDecoder(&text)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	// A monotonic clock is not in the file, nor is what time zone has which name.
	sent.Began, got.Began = sent.Began.Round(0).UTC(), got.Began.UTC()
	sent.Violations[0].At, got.Violations[0].At = sent.Violations[0].At.Round(0).UTC(), got.Violations[0].At.UTC()
	if !reflect.DeepEqual(&got, sent) {
		t.Errorf("read back %+v, want %+v", got, *sent)
	}
}

func TestVerdict(t *testing.T) {
	broken := &history.Findings{}
	broken.Add(history.NoLeak, nil, "")
	for _, test := range []struct {
		f    *history.Findings
		err  error
		want Verdict
	}{
		{&history.Findings{}, nil, Clean},
		{nil, nil, Clean},
		{&history.Findings{}, interrupted{}, Unproven},
		{broken, nil, Violated},
		{broken, interrupted{}, Violated},
	} {
		if got := emptyResult(test.err, test.f).Verdict; got != test.want {
			t.Errorf("%+v and %v: %s, want %s", test.f, test.err, got, test.want)
		}
	}
}

func TestEmptyResultHasLists(t *testing.T) {
	var text bytes.Buffer
	if err := emptyResult(nil, nil).JSON(&text); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "null") {
		t.Errorf("a list is null:\n%s", &text)
	}
}

// TestPromisesAreAllCounted: one that the list lacks would be counted among the
// violations only.
func TestPromisesAreAllCounted(t *testing.T) {
	var f history.Findings
	for _, p := range history.Promises {
		f.Add(p, nil, "")
	}
	x := emptyResult(nil, &f)
	for i, p := range x.Promises {
		if p.Promise != history.Promises[i] || p.Broken != 1 {
			t.Errorf("promise %d: %+v, want %q broken once", i, p, history.Promises[i])
		}
	}
	if len(x.Promises) != x.Summary.Violations {
		t.Errorf("%d promises for %d violations", len(x.Promises), x.Summary.Violations)
	}
}

func TestFaultsAreCountedByKind(t *testing.T) {
	planned := []workload.Fault{
		{Kind: workload.DiskFull, Times: 1}, {Kind: workload.BusyTarget, Times: 4}, {Kind: workload.DiskFull, Times: 2},
	}
	spans := []history.Span{{Kind: workload.DiskFull}, {Kind: workload.ClockStep}, {Kind: workload.DiskFull}}
	injected := map[workload.FaultKind]int{workload.BusyTarget: 3, workload.PodRemoved: 2, workload.NestedMount: 1}
	want := []faultCount{
		{workload.DiskFull, 3, 2}, {workload.BusyTarget, 4, 3},
		// Nobody planned these.
		{workload.ClockStep, 0, 1}, {workload.NestedMount, 0, 1}, {workload.PodRemoved, 0, 2},
	}
	if got := countFaults(planned, spans, injected); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
